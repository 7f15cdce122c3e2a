#ifndef GMB_BROKER_MACHINE_READY_STOCK_H_
#define GMB_BROKER_MACHINE_READY_STOCK_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "broker/machine/size_demand.h"
#include "broker/machine/slab.h"
#include "quota/units.h"

namespace gmb::broker {

// Slabs that no client has seen: whole ones, tails of the sizes that are asked
// for, and tails of sizes that double. Which of them are there, and which should
// be.
class ReadyStock {
 public:
  struct Options {
    uint64_t whole_bytes;
    uint64_t most_slabs;
    uint64_t most_tails;  // of all sizes
    // This size, twice it, four times and so on, below a whole slab, stand
    // ready whether or not somebody has asked for them; 0: none.
    uint64_t least_standing_bytes = 0;
    // Of tails that are made in one step, beyond the first of them.
    uint64_t step_bytes;
  };
  explicit ReadyStock(const Options& options)
      : options_(options),
        all_standing_(AllStanding()),
        demand_(options.whole_bytes) {}

  // --- Slabs that are there.
  void Keep(const Slab& slab);
  // One of that size; nullopt: there is none.
  [[nodiscard]] std::optional<Slab> Take(uint64_t bytes);
  // One of the largest: the fewest handles for the bytes that somebody needs.
  [[nodiscard]] std::optional<Slab> TakeLargest();
  [[nodiscard]] size_t size() const { return count_; }
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

  // --- Slabs that should be there.
  void NoteAsked(uint64_t bytes) { demand_.Note(bytes); }
  // It is later now, and so much of the pool is neither granted nor float, nor
  // lost.
  void Update(quota::Instant now, uint64_t left_bytes);
  // Whether one more of that size is wanted, beside those being made.
  [[nodiscard]] bool Wants(uint64_t bytes,
                           absl::Span<const uint64_t> making) const;
  // Tails to be made of so many bytes in one step, so many at most.
  [[nodiscard]] std::vector<uint64_t> TailsToMake(uint64_t of_bytes,
                                                  size_t most) const;
  // Whether they are worth a whole slab: one of those that stand ready is not
  // there, or they would use at least half of it.
  [[nodiscard]] bool LacksTails() const;
  // Takes tails of which there are more than twice as many as are wanted, or
  // stand ready, so many at most.
  [[nodiscard]] std::vector<Slab> TakeUnwanted(size_t most);

 private:
  [[nodiscard]] size_t CountOf(uint64_t bytes) const;
  [[nodiscard]] size_t Tails() const {
    return count_ - CountOf(options_.whole_bytes);
  }
  // As many as were asked for of late, and of what is left no larger share than
  // of what was asked for; or as many as stand ready of that size, if more.
  [[nodiscard]] uint64_t WantedTails(uint64_t bytes) const;
  [[nodiscard]] uint64_t AskedTails(uint64_t bytes) const;
  [[nodiscard]] uint64_t StandingTails(uint64_t bytes) const;
  // None of them where others have leased nearly all.
  [[nodiscard]] uint64_t WantedStanding(uint64_t bytes) const;
  // The sizes of tails that may be wanted.
  [[nodiscard]] std::vector<uint64_t> Sizes() const;

  [[nodiscard]] uint64_t AllStanding() const;

  const Options options_;
  const uint64_t all_standing_;  // of all sizes
  // None of its lists is empty.
  std::map<uint64_t, std::vector<Slab>> by_size_;
  size_t count_ = 0;
  uint64_t bytes_ = 0;
  uint64_t left_bytes_ = 0;
  SizeDemand demand_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_READY_STOCK_H_
