#ifndef GMB_IPC_GATE_WATCH_H_
#define GMB_IPC_GATE_WATCH_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "ipc/gate_word.h"

namespace gmb::ipc {

// The broker's view of a gate at which it looks now and then: since when it is
// idle. Pure; times are those of one clock that does not jump.
//
// Between two looks the client's own stamp decides, outside of them it cannot:
// a client that lies about it gains the time between two looks.
class GateWatch {
 public:
  // The page's.
  struct Stamps {
    absl::Time left_at;
    absl::Time woken_at = absl::InfinitePast();  // never
  };

  // `now` is that of the first look, at which the session counts as active.
  explicit GateWatch(absl::Time now) : began_at_(now), looked_at_(now) {}

  // `now` does not go back.
  void Look(GateWord word, const Stamps& stamps, absl::Time now);

  // Nothing while a scope is in, or the word makes no sense.
  [[nodiscard]] std::optional<absl::Time> idle_since() const {
    return idle_since_;
  }
  // Between two times that its memory came into use, as was usual lately; at
  // least the time since it did so last. As exact as the looks are frequent.
  // Nothing: it has not been seen to come into use twice.
  [[nodiscard]] std::optional<absl::Duration> usual_gap() const;
  // From its first scope to the end of its last, of uses between two parkings,
  // as was usual lately: what the client says. Nothing: none was seen to end.
  [[nodiscard]] std::optional<absl::Duration> usual_use() const { return use_; }

 private:
  void SeeUse(uint64_t epoch, absl::Time now);
  void SeeLength(const Stamps& stamps, absl::Time now);

  absl::Time began_at_;
  absl::Time looked_at_;
  uint64_t epoch_ = 0;                 // of the last look
  std::optional<absl::Time> used_at_;  // the look that saw the epoch grow last
  std::optional<absl::Duration> gap_;
  std::optional<absl::Duration> use_;
  absl::Time woken_at_ = absl::InfinitePast();  // of the last use in it
  std::optional<absl::Time> idle_since_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_GATE_WATCH_H_
