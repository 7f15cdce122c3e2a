// Closes the sockets of peers once the broker is done with them.
#include "ipc/fd_disposer.h"

#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

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
    // What newer C libraries call sigev_notify_thread_id.
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
  std::atomic<size_t> waiting = 0;

  Mutex mu;
  CondVar wake;
  CondVar closed;
  std::deque<UniqueFd> queue ABSL_GUARDED_BY(mu);
  // When the close in hand began, by thread.
  std::map<pid_t, std::optional<Time>> threads ABSL_GUARDED_BY(mu);
  size_t starting ABSL_GUARDED_BY(mu) = 0;
  bool stopping ABSL_GUARDED_BY(mu) = false;

  // Whether only another thread could go on.
  [[nodiscard]] bool AllStuck(Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
    return starting == 0 && threads.size() < kMostThreads &&
           std::all_of(threads.begin(), threads.end(), [&](const auto& thread) {
             return thread.second.has_value() && now - *thread.second >= kStuck;
           });
  }

  void Run() {
    Unblock();
    // Without a timer a close lasts as long as it likes; others go on then.
    const auto interrupter = Interrupter::Create();
    const pid_t self = ::gettid();
    {
      MutexLock lock(&mu);
      --starting;
      threads[self] = std::nullopt;
    }
    while (std::optional<UniqueFd> fd = Next(self)) {
      if (interrupter.ok()) (*interrupter)->Arm();
      fd->reset();
      if (interrupter.ok()) (*interrupter)->Disarm();
    }
    MutexLock lock(&mu);
    threads.erase(self);
    closed.NotifyAll();
  }

  // Waits for it; nullopt: stop.
  std::optional<UniqueFd> Next(pid_t self) ABSL_LOCKS_EXCLUDED(mu) {
    MutexLock lock(&mu);
    if (std::exchange(threads[self], std::nullopt).has_value()) --waiting;
    while (queue.empty() && !stopping) wake.Wait(&mu);
    if (queue.empty()) return std::nullopt;
    UniqueFd fd = std::move(queue.front());
    queue.pop_front();
    threads[self] = Clock::now();
    return fd;
  }
};

namespace {

// False: the system gives no thread.
template <typename Shared>
bool StartThread(std::shared_ptr<Shared> shared) {
  try {
    std::thread([shared = std::move(shared)] { shared->Run(); }).detach();
    return true;
  } catch (const std::system_error&) {
    return false;
  }
}

}  // namespace

FdDisposer::FdDisposer(std::shared_ptr<Shared> shared)
    : shared_(std::move(shared)), waiting_(shared_->waiting) {}

absl::StatusOr<std::unique_ptr<FdDisposer>> FdDisposer::Start() {
  if (absl::Status installed = InstallHandler(); !installed.ok())
    return installed;
  if (const auto tried = Interrupter::Create(); !tried.ok())
    return tried.status();
  auto shared = std::make_shared<Shared>();
  {
    MutexLock lock(&shared->mu);
    shared->starting = 1;
  }
  if (!StartThread(shared)) {
    return absl::InternalError(
        "no thread can be started: raise the limit on processes (ulimit -u)");
  }
  return std::unique_ptr<FdDisposer>(new FdDisposer(std::move(shared)));
}

FdDisposer::~FdDisposer() {
  const Time deadline = Clock::now() + kLastWait;
  MutexLock lock(&shared_->mu);
  shared_->stopping = true;
  shared_->wake.NotifyAll();
  while (!shared_->threads.empty() || shared_->starting > 0) {
    if (!shared_->closed.WaitUntil(&shared_->mu, deadline)) break;
  }
  for (UniqueFd& fd : shared_->queue) (void)fd.release();
  shared_->queue.clear();
}

void FdDisposer::Dispose(UniqueFd fd) {
  if (!fd.valid()) return;
  bool start = false;
  {
    MutexLock lock(&shared_->mu);
    shared_->queue.push_back(std::move(fd));
    ++shared_->waiting;
    start = shared_->AllStuck(Clock::now());
    if (start) ++shared_->starting;
    shared_->wake.NotifyOne();
  }
  if (!start || StartThread(shared_)) return;
  MutexLock lock(&shared_->mu);
  --shared_->starting;  // tried again with the next one
}

}  // namespace gmb::ipc
