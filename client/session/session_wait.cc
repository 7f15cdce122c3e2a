// The session's thread sleeps here, and is left alone while others do its work.
#include "client/session/session_wait.h"

#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>

#include <array>
#include <cstdint>

#include "base/status_macros.h"

namespace gmb::internal {
namespace {

constexpr uint32_t kData = EPOLLIN;
constexpr uint32_t kNothing = 0;

enum Waited : uint64_t { kSockets, kWakeup, kAlarm };

ipc::EpollTag TagOf(Waited what) { return {.kind = {}, .id = what}; }

}  // namespace

absl::StatusOr<SessionWait> SessionWait::Create() {
  GMB_ASSIGN_OR_RETURN(ipc::EpollSet set, ipc::EpollSet::Create());
  GMB_ASSIGN_OR_RETURN(ipc::EpollSet sockets, ipc::EpollSet::Create());
  GMB_ASSIGN_OR_RETURN(ipc::Wakeup wakeup, ipc::Wakeup::Create());
  GMB_ASSIGN_OR_RETURN(ipc::Alarm alarm, ipc::Alarm::Create());
  GMB_RETURN_IF_ERROR(set.Add(wakeup.fd(), TagOf(kWakeup), EPOLLIN));
  GMB_RETURN_IF_ERROR(set.Add(alarm.fd(), TagOf(kAlarm), EPOLLIN));
  GMB_RETURN_IF_ERROR(set.Add(sockets.fd(), TagOf(kSockets), kData));
  return SessionWait(std::move(set), std::move(sockets), std::move(wakeup),
                     std::move(alarm));
}

absl::Status SessionWait::AddSocket(int fd) const {
  return sockets_.Add(fd, TagOf(kSockets), kData);
}

void SessionWait::RemoveSocket(int fd) const { sockets_.Remove(fd); }

// A change of what is there already does not fail.
void SessionWait::ListenForRoom(int fd, bool on) const {
  sockets_.Change(fd, TagOf(kSockets), on ? kData | EPOLLOUT : kData)
      .IgnoreError();
}

void SessionWait::ListenAtSockets(bool on) const {
  set_.Change(sockets_.fd(), TagOf(kSockets), on ? kData : kNothing)
      .IgnoreError();
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

bool SessionWait::WaitAtSockets(ipc::Wakeup* wakeup, TimePoint polls_until,
                                std::optional<TimePoint> until) const {
  std::array<pollfd, 2> fds = {
      {{sockets_.fd(), POLLIN, 0}, {wakeup->fd(), POLLIN, 0}}};
  int ready = 0;
  while (ready == 0 && std::chrono::steady_clock::now() < polls_until) {
    ready = poll(fds.data(), fds.size(), 0);
    if (ready == 0) sched_yield();
  }
  if (ready == 0)
    ready = poll(fds.data(), fds.size(), ipc::MillisecondsUntil(until));
  if (ready <= 0) return false;
  if (fds[1].revents != 0) wakeup->Clear();
  return fds[0].revents != 0;
}

}  // namespace gmb::internal
