#include "bench/reclaim/event_log.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::bench {
namespace {

constexpr std::chrono::seconds kEventPatience(60);

absl::Time At(const v1::Event& event) {
  return absl::FromUnixSeconds(event.at().seconds()) +
         absl::Nanoseconds(event.at().nanos());
}

absl::Duration Took(const v1::Event& event) {
  return absl::Seconds(event.took().seconds()) +
         absl::Nanoseconds(event.took().nanos());
}

}  // namespace

EventLog::EventLog(const cli::AdminClient* admin)
    : reader_(admin->Watch()), thread_([this] { Read(); }) {}

EventLog::~EventLog() {
  reader_->Cancel();
  thread_.join();
}

void EventLog::Read() {
  v1::Event event;
  while (reader_->Read(&event)) {
    const std::lock_guard<std::mutex> lock(mutex_);
    missed_ = missed_ || event.missed() > 0;
    events_.push_back(std::move(event));
    changed_.notify_all();
  }
  // Cancelled, or the broker is gone: calls say so.
  reader_->Finish().IgnoreError();
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool EventLog::AwaitAny(absl::Duration patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait_for(lock, absl::ToChronoNanoseconds(patience),
                    [&] { return ended_ || !events_.empty(); });
  return !events_.empty();
}

void EventLog::Clear() {
  const std::lock_guard<std::mutex> lock(mutex_);
  events_.clear();
  missed_ = false;
}

bool EventLog::Has(const std::string& kind) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::any_of(events_.begin(), events_.end(),
                     [&](const v1::Event& e) { return e.kind() == kind; });
}

absl::StatusOr<Moves> EventLog::Await(const std::string& kind, uint64_t bytes) {
  Moves moves;
  uint64_t seen = 0;
  std::string last;
  const auto count = [&] {
    moves = Moves();
    seen = 0;
    absl::Time first = absl::InfiniteFuture();
    absl::Time end = absl::InfinitePast();
    for (const v1::Event& event : events_) {
      last = absl::StrCat(event.kind(), " ", event.message());
      if (event.kind() != kind) continue;
      seen += event.bytes();
      ++moves.leases;
      moves.longest = std::max(moves.longest, Took(event));
      first = std::min(first, At(event) - Took(event));
      end = std::max(end, At(event));
    }
    moves.window = end - first;
    return seen >= bytes;
  };
  std::unique_lock<std::mutex> lock(mutex_);
  const bool came = changed_.wait_for(
      lock, kEventPatience, [&] { return ended_ || missed_ || count(); });
  if (missed_) return absl::DataLossError("the broker dropped events");
  if (!came || seen < bytes) {
    return absl::DeadlineExceededError(
        absl::StrCat("events \"", kind, "\" tell of ", seen, " bytes of ",
                     bytes, "; the last one of any kind: ", last));
  }
  return moves;
}

}  // namespace gmb::bench
