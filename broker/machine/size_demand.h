#ifndef GMB_BROKER_MACHINE_SIZE_DEMAND_H_
#define GMB_BROKER_MACHINE_SIZE_DEMAND_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "quota/units.h"

namespace gmb::broker {

// How many slabs of each size were asked for in the last ten minutes, or five
// at least. It knows so many sizes that a look at all of them costs little:
// nobody's odd requests make every turn of the broker longer.
class SizeDemand {
 public:
  static constexpr quota::Nanoseconds kPeriod = std::chrono::minutes(5);
  static constexpr size_t kMostSizes = 32;  // in a period; others do not count

  void Note(uint64_t bytes);
  // It is later now: what was asked for two periods ago is forgotten.
  void Pass(quota::Instant now);

  [[nodiscard]] uint64_t SlabsOf(uint64_t bytes) const;
  // The sizes that were asked for.
  [[nodiscard]] std::vector<uint64_t> Sizes() const;
  // Of all slabs that were asked for.
  [[nodiscard]] uint64_t slabs() const { return now_.slabs + last_.slabs; }
  [[nodiscard]] uint64_t bytes() const { return now_.bytes + last_.bytes; }

 private:
  struct Period {
    std::map<uint64_t, uint64_t> by_size;  // slabs
    uint64_t slabs = 0;
    uint64_t bytes = 0;
  };
  static uint64_t In(const Period& period, uint64_t bytes);

  Period now_;
  Period last_;
  quota::Instant ends_{0};  // of the period of now
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SIZE_DEMAND_H_
