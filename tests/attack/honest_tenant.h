#ifndef GMB_TESTS_ATTACK_HONEST_TENANT_H_
#define GMB_TESTS_ATTACK_HONEST_TENANT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmb/client.h"

namespace gmb::attack {

// A session that leases, writes, reads and releases, as programs do, and looks
// at every byte. It holds one lease all the time. Of one thread.
class HonestTenant {
 public:
  // `tag` is what it writes, in every byte; not 0.
  static absl::StatusOr<std::unique_ptr<HonestTenant>> Open(
      const std::string& socket_dir, unsigned char tag);

  // One lease, from acquiring to releasing. DATA_LOSS: bytes that are neither
  // zero nor its own.
  absl::Status Round();
  // That what it holds is as it was written.
  [[nodiscard]] absl::Status CheckHeld() const;

 private:
  HonestTenant(std::unique_ptr<Client> client, unsigned char tag)
      : client_(std::move(client)), tag_(tag) {}
  absl::StatusOr<Lease> Take();

  std::unique_ptr<Client> client_;
  const unsigned char tag_;
  Lease held_;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HONEST_TENANT_H_
