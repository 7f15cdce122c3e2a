// The load's figures, which outlive the processes that make them.
#include "bench/load/tally.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "gmb/error.h"

namespace gmb::bench {
namespace {

static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<Op>::is_always_lock_free);

absl::StatusOr<Tally*> MapTally(int fd) {
  void* const memory =
      ::mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return absl::ErrnoToStatus(errno, "mmap");
  return static_cast<Tally*>(memory);  // zeros are a Tally
}

}  // namespace

void TimeCounts::Add(absl::Duration time) {
  const uint64_t us = static_cast<uint64_t>(
      std::max<int64_t>(absl::ToInt64Microseconds(time), 1));
  const auto step = static_cast<size_t>(std::log2(static_cast<double>(us)) *
                                        static_cast<double>(kStepsToDouble));
  ++steps_.at(std::min(step, kSteps - 1));
  uint64_t longest = longest_us_;
  while (us > longest && !longest_us_.compare_exchange_weak(longest, us)) {
  }
}

uint64_t TimeCounts::count() const {
  uint64_t sum = 0;
  for (const std::atomic<uint64_t>& step : steps_) sum += step;
  return sum;
}

double TimeCounts::Quantile(double share) const {
  const uint64_t all = count();
  if (all == 0) return 0;
  if (share >= 1) return static_cast<double>(longest_us_) / 1000;
  const auto at = static_cast<uint64_t>(share * static_cast<double>(all - 1));
  uint64_t below = 0;
  size_t step = 0;
  while (below + steps_.at(step) <= at && step + 1 < kSteps)
    below += steps_.at(step++);
  const double middle =
      (static_cast<double>(step) + 0.5) / static_cast<double>(kStepsToDouble);
  return std::exp2(middle) / 1000;
}

uint64_t Tally::Calls() {
  return of(Op::kAcquire).count() + of(Op::kRelease).count() +
         of(Op::kWake).count();
}

std::string Tally::Refusals() const {
  std::string text;
  for (size_t i = 0; i < refusals.size(); ++i) {
    if (refusals.at(i) == 0) continue;
    absl::StrAppend(
        &text, text.empty() ? "" : ", ",
        i == 0 ? "NOT_BACK" : ErrorReasonName(static_cast<ErrorReason>(i)), " ",
        refusals.at(i).load());
  }
  return text.empty() ? "none" : text;
}

SharedTally::SharedTally(base::UniqueFd fd, Tally* tally)
    : fd_(std::move(fd)), tally_(tally) {}

SharedTally::SharedTally(SharedTally&& other) noexcept
    : fd_(std::move(other.fd_)), tally_(std::exchange(other.tally_, nullptr)) {}

SharedTally::~SharedTally() {
  if (tally_ != nullptr) ::munmap(tally_, sizeof(Tally));
}

absl::StatusOr<SharedTally> SharedTally::Make() {
  base::UniqueFd fd(::memfd_create("load-tally", MFD_CLOEXEC));
  if (!fd.valid() || ::ftruncate(fd.get(), sizeof(Tally)) != 0)
    return absl::ErrnoToStatus(errno, "memfd_create");
  const absl::StatusOr<Tally*> tally = MapTally(fd.get());
  if (!tally.ok()) return tally.status();
  return SharedTally(std::move(fd), *tally);
}

absl::StatusOr<SharedTally> SharedTally::Map(int fd) {
  const absl::StatusOr<Tally*> tally = MapTally(fd);
  if (!tally.ok()) return tally.status();
  return SharedTally(base::UniqueFd(), *tally);
}

}  // namespace gmb::bench
