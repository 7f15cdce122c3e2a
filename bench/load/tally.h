#ifndef GMB_BENCH_LOAD_TALLY_H_
#define GMB_BENCH_LOAD_TALLY_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"

namespace gmb::bench {

// The acts of clients. A scope counts as a wake where the memory was away.
enum class Op : uint32_t { kConnect, kAcquire, kRelease, kScope, kWake, kKill };
inline constexpr std::array<const char*, 6> kOpNames = {
    "connect", "acquire", "release", "scope", "wake", "kill"};

// How often something took how long, in steps of 4.4 %. Any process that has
// the memory may add.
class TimeCounts {
 public:
  void Add(absl::Duration time);
  [[nodiscard]] uint64_t count() const;
  // In ms; 0 when there are none. 1: the longest, to the microsecond.
  [[nodiscard]] double Quantile(double share) const;

 private:
  static constexpr size_t kStepsToDouble = 16;
  static constexpr size_t kSteps = 28 * kStepsToDouble;  // up to 4.5 minutes

  std::array<std::atomic<uint64_t>, kSteps> steps_;
  std::atomic<uint64_t> longest_us_;
};

// The present act of a session.
struct SessionSlot {
  std::atomic<int64_t> since_ns;  // of the steady clock; 0: it is not there
  std::atomic<Op> op;
};

// The counts of what all clients have done so far, in memory that they share,
// so that one that is killed takes none with it.
struct Tally {
  static constexpr size_t kMostSessions = 4096;
  static constexpr size_t kReasons = 32;  // ErrorReason; 0: not back in time

  std::array<TimeCounts, kOpNames.size()> ops;
  std::array<std::atomic<uint64_t>, kReasons> refusals;
  std::atomic<uint64_t> verified_bytes;
  // Of leases that were given back without a look, since their memory was away.
  std::atomic<uint64_t> unread_bytes;
  std::atomic<uint64_t> lost_words;      // not as they were written
  std::atomic<uint64_t> foreign_words;   // another tenant's
  std::atomic<uint64_t> connects_again;  // after one that met no broker
  std::atomic<bool> stop;                // all are to verify, release and end
  std::array<SessionSlot, kMostSessions> sessions;

  [[nodiscard]] TimeCounts& of(Op op) { return ops[static_cast<size_t>(op)]; }
  // Acquires, releases and wakes: what the broker has to answer.
  [[nodiscard]] uint64_t Calls();
  // "TENANT_LIMIT 12, NOT_BACK 3"; "none".
  [[nodiscard]] std::string Refusals() const;
};

// The memory with a Tally.
class SharedTally {
 public:
  [[nodiscard]] static absl::StatusOr<SharedTally> Make();
  // That of another process.
  [[nodiscard]] static absl::StatusOr<SharedTally> Map(int fd);
  SharedTally(SharedTally&& other) noexcept;
  SharedTally& operator=(SharedTally&& other) = delete;
  ~SharedTally();

  [[nodiscard]] Tally& operator*() const { return *tally_; }
  [[nodiscard]] Tally* operator->() const { return tally_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  SharedTally(base::UniqueFd fd, Tally* tally);

  base::UniqueFd fd_;  // none in a process that has mapped another's
  Tally* tally_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_LOAD_TALLY_H_
