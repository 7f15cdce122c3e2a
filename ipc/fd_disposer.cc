// Closes the sockets of peers once the broker is done with them.
#include "ipc/fd_disposer.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"
#include "base/status_macros.h"

namespace gmb::ipc {
namespace {

using Clock = std::chrono::steady_clock;

// A close that nothing delays takes some microseconds.
constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 250'000};
// A close that lasts so long is not ended by signals.
constexpr std::chrono::seconds kStuck{1};
constexpr std::chrono::seconds kLastWait{1};

int InterruptSignal() { return SIGRTMIN + 3; }

// A stream that either end has shut down: nothing more can come by it, and
// nobody reads it any more. (Packets may be another broker's to read.)
bool IsEndedStream(int fd) {
  int type = 0;
  socklen_t size = sizeof(type);
  pollfd ended{.fd = fd, .events = POLLRDHUP, .revents = 0};
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 &&
         type == SOCK_STREAM && ::poll(&ended, 1, 0) == 1 &&
         (ended.revents & (POLLRDHUP | POLLHUP)) != 0;
}

// Takes out what lies unread, so that this thread drops the fds in it. A close
// drops them in the thread that has the kernel's last reference to the
// stream, and since Linux 6.10 an epoll_wait has one while it looks at it.
void DropUnread(int stream) {
  std::array<char, 16'384> bytes{};
  while (true) {
    const ssize_t read =
        ::recv(stream, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (read == 0 || (read < 0 && errno != EINTR)) return;
  }
}

// Interrupts this thread's system call again and again while it is armed.
class Interrupter {
 public:
  static absl::StatusOr<std::unique_ptr<Interrupter>> Create() {
    sigevent event{};
    event.sigev_notify = SIGEV_THREAD_ID;
    event.sigev_signo = InterruptSignal();
    // Newer C libraries call it sigev_notify_thread_id.
    event._sigev_un._tid = ::gettid();
    timer_t timer = nullptr;
    if (::timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) {
      return absl::InternalError(
          absl::ErrnoToStatus(errno, "timer_create").message());
    }
    return std::unique_ptr<Interrupter>(new Interrupter(timer));
  }
  ~Interrupter() { ::timer_delete(timer_); }
  Interrupter(const Interrupter&) = delete;
  Interrupter& operator=(const Interrupter&) = delete;

  void Arm() { Set({.it_interval = kPatience, .it_value = kPatience}); }
  void Disarm() { Set({}); }

 private:
  explicit Interrupter(timer_t timer) : timer_(timer) {}
  void Set(const itimerspec& when) {
    ::timer_settime(timer_, 0, &when, nullptr);
  }

  const timer_t timer_;
};

absl::Status InstallHandler() {
  struct sigaction action {};
  action.sa_handler = [](int) {};
  // Without SA_RESTART: to interrupt is what it is for.
  if (::sigaction(InterruptSignal(), &action, nullptr) == 0)
    return absl::OkStatus();
  return absl::InternalError(absl::ErrnoToStatus(errno, "sigaction").message());
}

void Unblock() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, InterruptSignal());
  ::pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

}  // namespace

struct FdDisposer::Shared {
  struct Worker {
    std::thread thread;  // touched by its starter and by the destructor alone
    std::optional<Time> closing_since;
    bool ended = false;
  };
  // Where something waits. The first socket of a door is being closed, and
  // keeps its place meanwhile, or the door's turn comes.
  using Doors = std::map<std::string, std::deque<base::UniqueFd>, std::less<>>;
  struct Job {
    Doors::iterator door;
    base::UniqueFd fd;
  };

  base::Mutex mu;
  base::CondVar wake;
  base::CondVar ended;
  Doors doors ABSL_GUARDED_BY(mu);
  std::deque<Doors::iterator> turns ABSL_GUARDED_BY(mu);
  std::list<Worker> workers ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;

  // Whether only another thread could go on.
  [[nodiscard]] bool AllStuck(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return !turns.empty() && workers.size() < kMostThreads &&
           std::all_of(workers.begin(), workers.end(), [&](const Worker& each) {
             return each.closing_since.has_value() &&
                    now - *each.closing_since >= kStuck;
           });
  }

  void Run(Worker* self) ABSL_LOCKS_EXCLUDED(mu) {
    Unblock();
    // Without a timer a close lasts as long as it likes; others go on then.
    const auto interrupter = Interrupter::Create();
    while (std::optional<Job> job = Next(self)) {
      if (interrupter.ok()) (*interrupter)->Arm();
      if (IsEndedStream(job->fd.get())) DropUnread(job->fd.get());
      job->fd.reset();
      if (interrupter.ok()) (*interrupter)->Disarm();
      Done(job->door, self);
    }
    base::MutexLock lock(&mu);
    self->ended = true;
    ended.NotifyAll();
  }

  // Waits for a door's turn; nullopt: stop.
  std::optional<Job> Next(Worker* self) ABSL_LOCKS_EXCLUDED(mu) {
    base::MutexLock lock(&mu);
    while (turns.empty() && !stopping) wake.Wait(&mu);
    if (turns.empty()) return std::nullopt;
    const Doors::iterator door = turns.front();
    turns.pop_front();
    self->closing_since = Clock::now();
    return Job{door, std::move(door->second.front())};
  }

  void Done(Doors::iterator door, Worker* self) ABSL_LOCKS_EXCLUDED(mu) {
    base::MutexLock lock(&mu);
    self->closing_since.reset();
    door->second.pop_front();
    if (door->second.empty()) {
      doors.erase(door);
    } else {
      turns.push_back(door);
    }
  }
};

// False: the system gives no thread.
bool FdDisposer::StartThread(const std::shared_ptr<Shared>& shared) {
  std::list<Shared::Worker>::iterator worker;
  {
    base::MutexLock lock(&shared->mu);
    worker = shared->workers.emplace(shared->workers.end());
  }
  try {
    worker->thread =
        std::thread([shared, self = &*worker] { shared->Run(self); });
    return true;
  } catch (const std::system_error&) {
    base::MutexLock lock(&shared->mu);
    shared->workers.erase(worker);
    return false;
  }
}

FdDisposer::FdDisposer(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)) {}

absl::StatusOr<std::unique_ptr<FdDisposer>> FdDisposer::Start() {
  GMB_RETURN_IF_ERROR(InstallHandler());
  if (const auto tried = Interrupter::Create(); !tried.ok())
    return tried.status();
  auto shared = std::make_shared<Shared>();
  if (!StartThread(shared)) {
    return absl::InternalError(
        "no thread can be started: raise the limit on processes (ulimit -u)");
  }
  return std::unique_ptr<FdDisposer>(new FdDisposer(std::move(shared)));
}

FdDisposer::~FdDisposer() {
  const Time deadline = Clock::now() + kLastWait;
  std::vector<std::thread> done;
  std::vector<std::thread> stuck;
  {
    base::MutexLock lock(&shared_->mu);
    shared_->stopping = true;
    shared_->wake.NotifyAll();
    const auto running = [](const auto& worker) { return !worker.ended; };
    while (absl::c_any_of(shared_->workers, running)) {
      if (!shared_->ended.WaitUntil(&shared_->mu, deadline)) break;
    }
    for (auto& [door, queue] : shared_->doors) {
      for (base::UniqueFd& fd : queue) (void)fd.release();
    }
    shared_->turns.clear();
    // A thread whose close does not end keeps its entry, and is left alone.
    for (Shared::Worker& worker : shared_->workers) {
      (running(worker) ? stuck : done).push_back(std::move(worker.thread));
    }
  }
  for (std::thread& thread : stuck) thread.detach();
  for (std::thread& thread : done) thread.join();
}

void FdDisposer::Dispose(base::UniqueFd fd, absl::string_view door) {
  if (!fd.valid()) return;
  {
    base::MutexLock lock(&shared_->mu);
    const auto at = shared_->doors.try_emplace(std::string(door)).first;
    at->second.push_back(std::move(fd));
    if (at->second.size() == 1) shared_->turns.push_back(at);
    shared_->wake.NotifyOne();
  }
  ReplaceStuck();
}

bool FdDisposer::IsCrowded(absl::string_view door) {
  ReplaceStuck();
  base::MutexLock lock(&shared_->mu);
  const auto at = shared_->doors.find(door);
  return at != shared_->doors.end() && at->second.size() > kCrowded;
}

void FdDisposer::ReplaceStuck() {
  {
    base::MutexLock lock(&shared_->mu);
    if (!shared_->AllStuck(Clock::now())) return;
  }
  (void)StartThread(shared_);  // else it is tried again at the next call
}

size_t FdDisposer::waiting() const {
  base::MutexLock lock(&shared_->mu);
  size_t all = 0;
  for (const auto& [door, queue] : shared_->doors) all += queue.size();
  return all;
}

}  // namespace gmb::ipc
