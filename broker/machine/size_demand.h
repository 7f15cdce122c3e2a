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
// at least. It knows so few tails that a look at all of them costs little:
// nobody's odd requests make every turn of the broker longer. A size that is
// asked for again and again stays among them, whoever else asks for what.
class SizeDemand {
 public:
  static constexpr quota::Nanoseconds kPeriod = std::chrono::minutes(5);
  static constexpr size_t kMostSizes = 32;  // of tails, in a period

  // Of whole slabs, which always count.
  explicit SizeDemand(uint64_t whole_bytes) : whole_bytes_(whole_bytes) {}

  // Of more tails than it can know, one that was asked for once is forgotten
  // for it; if there is none, it does not count.
  void Note(uint64_t bytes);
  // It is later now: what was asked for two periods ago is forgotten.
  void Pass(quota::Instant now);

  [[nodiscard]] uint64_t SlabsOf(uint64_t bytes) const;
  // The sizes of tails that were asked for.
  [[nodiscard]] std::vector<uint64_t> Sizes() const;
  // Of all slabs that were asked for.
  [[nodiscard]] uint64_t slabs() const { return now_.slabs + last_.slabs; }
  [[nodiscard]] uint64_t bytes() const { return now_.bytes + last_.bytes; }

 private:
  struct Period {
    std::map<uint64_t, uint64_t> by_size;  // tails
    uint64_t whole = 0;
    uint64_t slabs = 0;
    uint64_t bytes = 0;
  };
  [[nodiscard]] uint64_t In(const Period& period, uint64_t bytes) const;
  // Of now: whether one more size can be known.
  bool MakeRoom();

  const uint64_t whole_bytes_;
  Period now_;
  Period last_;
  quota::Instant ends_{0};  // of the period of now
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SIZE_DEMAND_H_
