// The session's thread sleeps here, and is left alone while others do its work.
#include "client/session/session_wait.h"

#include <sys/epoll.h>

#include <array>
#include <cstdint>

#include "base/status_macros.h"

namespace gmb::internal {
namespace {

constexpr uint32_t kData = EPOLLIN;
constexpr uint32_t kNothing = 0;

enum Waited : uint64_t { kSocket, kWakeup, kAlarm };

ipc::EpollTag TagOf(Waited what) { return {.kind = {}, .id = what}; }

}  // namespace

absl::StatusOr<SessionWait> SessionWait::Create() {
  GMB_ASSIGN_OR_RETURN(ipc::EpollSet set, ipc::EpollSet::Create());
  GMB_ASSIGN_OR_RETURN(ipc::Wakeup wakeup, ipc::Wakeup::Create());
  GMB_ASSIGN_OR_RETURN(ipc::Alarm alarm, ipc::Alarm::Create());
  GMB_RETURN_IF_ERROR(set.Add(wakeup.fd(), TagOf(kWakeup), EPOLLIN));
  GMB_RETURN_IF_ERROR(set.Add(alarm.fd(), TagOf(kAlarm), EPOLLIN));
  return SessionWait(std::move(set), std::move(wakeup), std::move(alarm));
}

absl::Status SessionWait::AddSocket(int fd) {
  return set_.Add(fd, TagOf(kSocket), EPOLLIN);
}

// A change of what is there already does not fail.
void SessionWait::ListenAtSocket(int fd, bool on) const {
  set_.Change(fd, TagOf(kSocket), on ? kData : kNothing).IgnoreError();
}

void SessionWait::Wait(std::optional<TimePoint> until) {
  std::array<epoll_event, 3> events{};
  const int ready =
      ::epoll_wait(set_.fd(), events.data(), static_cast<int>(events.size()),
                   ipc::MillisecondsUntil(until));
  for (int i = 0; i < ready; ++i) {
    const uint64_t what =
        ipc::EpollTag::Unpack(events.at(static_cast<size_t>(i)).data.u64).id;
    if (what == kWakeup) wakeup_.Clear();
    if (what == kAlarm) alarm_.Clear();
  }
}

}  // namespace gmb::internal
