#ifndef GMB_BROKER_MACHINE_RETURNED_SLABS_H_
#define GMB_BROKER_MACHINE_RETURNED_SLABS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "broker/machine/slab.h"
#include "quota/units.h"

namespace gmb::broker {

// Slabs that came back and wait for the tenants that have held them.
class ReturnedSlabs {
 public:
  struct Returned {
    Slab slab;
    quota::TenantId tenant;
    quota::Instant expires;
  };

  void Keep(const Returned& returned);
  // One of that size that the tenant has held; nullopt: there is none.
  [[nodiscard]] std::optional<Slab> Take(quota::TenantId tenant,
                                         uint64_t bytes);
  // The first to expire. There must be one.
  Returned Pop();

  [[nodiscard]] bool empty() const { return slabs_.empty(); }
  [[nodiscard]] size_t size() const { return slabs_.size(); }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }
  // Of the first to expire; Max without one.
  [[nodiscard]] quota::Instant next_expiry() const {
    return empty() ? quota::Instant::Max() : slabs_.front().expires;
  }

 private:
  std::deque<Returned> slabs_;  // the first to expire first
  uint64_t bytes_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RETURNED_SLABS_H_
