#ifndef GMB_CLIENT_PRELOAD_PAST_THE_GATE_H_
#define GMB_CLIENT_PRELOAD_PAST_THE_GATE_H_

#include <chrono>
#include <optional>
#include <thread>

namespace gmb::preload {

// Ways past the program's gate that are in use, each looked for before the
// process is parked: they may come later. All answer null, or for people why the
// process must not be parked; the text is kept.

// `why` is that it could not be looked (no descriptor was free): see UnseenTimes.
[[nodiscard]] bool IsUnseen(const char* why);

// A debugger, or a tool that was put into the driver.
[[nodiscard]] const char* WatchedBy();

// An open device by which a network card or a disk reaches the GPU's memory:
// that the library for it is loaded says nothing, since frameworks load those
// anyway. `fds` is a folder of links, this process's open files.
[[nodiscard]] const char* OpenToOtherDevices(const char* fds = "/proc/self/fd");

// A library whose calls of gated functions go to the driver, or whose lookups go
// to the C library and may find them there: it was opened with RTLD_DEEPBIND,
// say. Reads the relocations of the libraries that were loaded since the last
// look, and then their targets. Not thread-safe; null for ever for what cannot
// be read.
[[nodiscard]] const char* BoundPastUs();

// The result of looks that could not be taken: the process is not parked now,
// and never again when they could not be for long. Not thread-safe.
class UnseenTimes {
 public:
  using Clock = std::chrono::steady_clock;
  enum class Verdict { kSeen, kNotNow, kNever };
  static constexpr auto kPatience = std::chrono::seconds(10);

  [[nodiscard]] Verdict Judge(bool seen, Clock::time_point now) {
    if (seen) {
      since_.reset();
      return Verdict::kSeen;
    }
    // Looks are taken when the process is to be parked: two that are far apart
    // say nothing of the time between them.
    if (!since_.has_value() || now - last_ > kPatience) since_ = now;
    last_ = now;
    return now - *since_ < kPatience ? Verdict::kNotNow : Verdict::kNever;
  }

 private:
  std::optional<Clock::time_point> since_;
  Clock::time_point last_{};  // of those
};

// When to look again: a look is too dear for each of many leases. The gate's own
// thread looks before each closing, and the mover's before each lease that it
// unmaps; so the first of the mover's after a closing is always due. Not
// thread-safe.
class LookTimes {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kEvery = std::chrono::milliseconds(100);

  // Whether the thread is to look now.
  [[nodiscard]] bool Due(std::thread::id thread, Clock::time_point now) {
    if (thread == last_thread_ && now - last_ < kEvery) return false;
    last_thread_ = thread;
    last_ = now;
    return true;
  }

 private:
  std::thread::id last_thread_;  // of no thread
  Clock::time_point last_{};
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_PAST_THE_GATE_H_
