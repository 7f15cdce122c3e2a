// Closes the sockets of peers once the broker is done with them.
#include "ipc/fd_disposer.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/status/status.h"

namespace gmb::ipc {
namespace {

using Clock = std::chrono::steady_clock;

// A close that nothing delays takes some microseconds.
constexpr timespec kPatience{.tv_sec = 0, .tv_nsec = 250'000};
// A close that lasts so long is not ended by signals.
constexpr std::chrono::seconds kStuck{1};
constexpr std::chrono::seconds kLastWait{1};

int InterruptSignal() { return SIGRTMIN + 3; }

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

  std::atomic<size_t> waiting = 0;

  Mutex mu;
  CondVar wake;
  CondVar ended;
  std::deque<UniqueFd> queue ABSL_GUARDED_BY(mu);
  std::list<Worker> workers ABSL_GUARDED_BY(mu);
  bool stopping ABSL_GUARDED_BY(mu) = false;

  // Whether only another thread could go on.
  [[nodiscard]] bool AllStuck(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return workers.size() < kMostThreads &&
           std::all_of(workers.begin(), workers.end(), [&](const Worker& each) {
             return each.closing_since.has_value() &&
                    now - *each.closing_since >= kStuck;
           });
  }

  void Run(Worker* self) ABSL_LOCKS_EXCLUDED(mu) {
    Unblock();
    // Without a timer a close lasts as long as it likes; others go on then.
    const auto interrupter = Interrupter::Create();
    while (std::optional<UniqueFd> fd = Next(self)) {
      if (interrupter.ok()) (*interrupter)->Arm();
      fd->reset();
      if (interrupter.ok()) (*interrupter)->Disarm();
    }
    MutexLock lock(&mu);
    self->ended = true;
    ended.NotifyAll();
  }

  // Waits for it; nullopt: stop.
  std::optional<UniqueFd> Next(Worker* self) ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(&mu);
    if (std::exchange(self->closing_since, std::nullopt).has_value()) --waiting;
    while (queue.empty() && !stopping) wake.Wait(&mu);
    if (queue.empty()) return std::nullopt;
    UniqueFd fd = std::move(queue.front());
    queue.pop_front();
    self->closing_since = Clock::now();
    return fd;
  }
};

// False: the system gives no thread.
bool FdDisposer::StartThread(const std::shared_ptr<Shared>& shared) {
  std::list<Shared::Worker>::iterator worker;
  {
    MutexLock lock(&shared->mu);
    worker = shared->workers.emplace(shared->workers.end());
  }
  try {
    worker->thread =
        std::thread([shared, self = &*worker] { shared->Run(self); });
    return true;
  } catch (const std::system_error&) {
    MutexLock lock(&shared->mu);
    shared->workers.erase(worker);
    return false;
  }
}

FdDisposer::FdDisposer(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), waiting_(shared_->waiting) {}

absl::StatusOr<std::unique_ptr<FdDisposer>> FdDisposer::Start() {
  if (absl::Status installed = InstallHandler(); !installed.ok())
    return installed;
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
    MutexLock lock(&shared_->mu);
    shared_->stopping = true;
    shared_->wake.NotifyAll();
    const auto running = [](const auto& worker) { return !worker.ended; };
    while (absl::c_any_of(shared_->workers, running)) {
      if (!shared_->ended.WaitUntil(&shared_->mu, deadline)) break;
    }
    for (UniqueFd& fd : shared_->queue) (void)fd.release();
    shared_->queue.clear();
    // A thread whose close does not end keeps its entry, and is left alone.
    for (Shared::Worker& worker : shared_->workers) {
      (running(worker) ? stuck : done).push_back(std::move(worker.thread));
    }
  }
  for (std::thread& thread : stuck) thread.detach();
  for (std::thread& thread : done) thread.join();
}

void FdDisposer::Dispose(UniqueFd fd) {
  if (!fd.valid()) return;
  bool start = false;
  {
    MutexLock lock(&shared_->mu);
    shared_->queue.push_back(std::move(fd));
    ++shared_->waiting;
    start = shared_->AllStuck(Clock::now());
    shared_->wake.NotifyOne();
  }
  // Without one it is tried again with the next fd.
  if (start) (void)StartThread(shared_);
}

}  // namespace gmb::ipc
