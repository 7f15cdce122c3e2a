#ifndef GMB_BROKER_MACHINE_ROOM_PROMISES_H_
#define GMB_BROKER_MACHINE_ROOM_PROMISES_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/btree_map.h"
#include "broker/hostpool/host_books.h"
#include "quota/units.h"

namespace gmb::broker {

// Room in the host pool that Acquires count on which became soft where they
// wait, until their leases reserve it. It is promised once: what counts on it
// keeps others that wait from becoming soft, and nobody from reserving it.
//
// A value, part of State.
class RoomPromises {
 public:
  // Whether such a lease of the tenant would have room beside what is promised.
  [[nodiscard]] bool LeaveRoomFor(const HostBooks& books,
                                  quota::TenantId tenant, uint64_t bytes) const;
  // Of a request that has none.
  void Add(quota::RequestId request, quota::TenantId tenant, uint64_t bytes);
  // Whether it had one.
  bool End(quota::RequestId request);

  [[nodiscard]] bool Has(quota::RequestId request) const {
    return promises_.contains(request);
  }
  [[nodiscard]] size_t size() const { return promises_.size(); }

 private:
  struct Promise {
    quota::TenantId tenant;
    uint64_t bytes = 0;
  };

  absl::btree_map<quota::RequestId, Promise> promises_;
  uint64_t all_bytes_ = 0;
  // Only of those that have any.
  absl::btree_map<quota::TenantId, uint64_t> tenants_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ROOM_PROMISES_H_
