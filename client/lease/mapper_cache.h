#ifndef GMB_CLIENT_LEASE_MAPPER_CACHE_H_
#define GMB_CLIENT_LEASE_MAPPER_CACHE_H_

#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/mutex.h"
#include "device/mapper.h"
#include "gmb/v1/handle.pb.h"

namespace gmb::internal {

// The mappers of the devices that a broker offers, each opened when the first
// lease on it is mapped. Thread-safe; leases share the mappers.
class MapperCache {
 public:
  // NOT_FOUND for a device that the broker did not name at the greeting.
  // Blocks while a GPU is opened, which can take some 250 ms.
  [[nodiscard]] absl::StatusOr<std::shared_ptr<device::Mapper>> Get(
      const v1::Welcome& welcome, const std::string& uuid);
  // Of the device that a request for `uuid` will be served from (empty: the
  // broker's only one), if it is known and open already; otherwise null.
  [[nodiscard]] std::shared_ptr<device::Mapper> FindOpen(
      const v1::Welcome& welcome, const std::string& uuid);

 private:
  base::Mutex mu_;
  std::map<std::string, std::shared_ptr<device::Mapper>> mappers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_LEASE_MAPPER_CACHE_H_
