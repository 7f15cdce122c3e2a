// Preloaded into gmbd: what it asks of the machine fails as the plan says that
// its test shares with it.
#include "tests/component/faulty_calls.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdlib>
#include <cstring>

// Of an older header than the kernel's.
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77
#endif

extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
}

namespace {

using gmb::component::FaultPlan;
using gmb::component::FaultyCall;

FaultPlan* plan = nullptr;
std::atomic<bool> next_allocation_fails = false;

__attribute__((constructor)) void OpenPlan() {
  const char* const path = std::getenv(gmb::component::kFaultPlanVariable);
  if (path == nullptr) return;
  const int fd = ::open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return;
  void* const memory = ::mmap(nullptr, sizeof(FaultPlan),
                              PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  ::syscall(SYS_close, fd);
  if (memory != MAP_FAILED) plan = static_cast<FaultPlan*>(memory);
}

// Sets errno, too.
bool Fails(FaultyCall call) {
  if (plan == nullptr || plan->call.load(std::memory_order_acquire) != call)
    return false;
  const uint64_t number = plan->calls.fetch_add(1);
  const uint64_t first = plan->first;
  if (number < first || number - first >= plan->count) return false;
  errno = plan->error;
  return true;
}

bool FailsToAllocate() {
  if (plan == nullptr) return false;
  if (next_allocation_fails.load() && next_allocation_fails.exchange(false)) {
    errno = ENOMEM;
    return true;
  }
  return Fails(FaultyCall::kAllocate);
}

// The C library's own function. Looked for without the lock of a static's
// initialisation, which may come by here itself.
template <typename Function>
class Next {
 public:
  constexpr Next(Function* /*its_kind*/, const char* name) : name_(name) {}
  Function* Get() {
    Function* function = function_.load(std::memory_order_acquire);
    if (function == nullptr) {
      function = reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name_));
      function_.store(function, std::memory_order_release);
    }
    return function;
  }

 private:
  const char* const name_;
  std::atomic<Function*> function_ = nullptr;
};

constinit Next next_syscall(&::syscall, "syscall");
constinit Next next_posix_fallocate(&::posix_fallocate, "posix_fallocate");
constinit Next next_pthread_create(&::pthread_create, "pthread_create");
constinit Next next_clock_gettime(&::clock_gettime, "clock_gettime");

enum class Way { kSend, kReceive };

// A broker's own socket at its keeper is the only one whose other end has a
// name.
FaultyCall CallOn(int fd, Way way) {
  int type = 0;
  socklen_t size = sizeof(type);
  if (::syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0)
    return FaultyCall::kNone;
  if (type == SOCK_STREAM) {
    return way == Way::kSend ? FaultyCall::kSendOnStream
                             : FaultyCall::kReceiveOnStream;
  }
  sockaddr_un peer{};
  size = sizeof(peer);
  const bool is_keeper = ::syscall(SYS_getpeername, fd, &peer, &size) == 0 &&
                         size > offsetof(sockaddr_un, sun_path);
  if (is_keeper) {
    return way == Way::kSend ? FaultyCall::kSendToKeeper
                             : FaultyCall::kReceiveFromKeeper;
  }
  return way == Way::kSend ? FaultyCall::kSendToPeer
                           : FaultyCall::kReceiveFromPeer;
}

bool FailsOn(int fd, Way way) {
  if (plan == nullptr || plan->call.load() < FaultyCall::kSendToPeer)
    return false;
  const int before = errno;
  const FaultyCall call = CallOn(fd, way);
  errno = before;
  return call != FaultyCall::kNone && Fails(call);
}

bool IsPlan(FaultyCall call) {
  return plan != nullptr && plan->call.load(std::memory_order_acquire) == call;
}

// Whether std::thread starts a thread there.
bool IsOfStandardLibrary(void* (*start)(void*)) {
  Dl_info info{};
  return ::dladdr(reinterpret_cast<void*>(start), &info) != 0 &&
         ::strstr(info.dli_fname, "libstdc++") != nullptr;
}

// `number`: fsync or fdatasync.
int Sync(long number, int fd) {
  if (IsPlan(FaultyCall::kDiskAnswer)) plan->calls.fetch_add(1);
  while (IsPlan(FaultyCall::kDiskAnswer)) {
    const timespec a_moment{.tv_sec = 0, .tv_nsec = 1'000'000};
    ::syscall(SYS_nanosleep, &a_moment, nullptr);
  }
  struct stat info {};
  if (IsPlan(FaultyCall::kLastOfDisk) && ::fstat(fd, &info) == 0 &&
      S_ISDIR(info.st_mode) && Fails(FaultyCall::kLastOfDisk)) {
    return -1;
  }
  return static_cast<int>(::syscall(number, fd));
}

ssize_t ReadAt(int fd, void* bytes, size_t count, off_t offset) {
  if (IsPlan(FaultyCall::kLastOfDisk) && plan->calls > plan->first) {
    errno = plan->error;
    return -1;
  }
  return ::syscall(SYS_pread64, fd, bytes, count, offset);
}

}  // namespace

// The functions that these replace have the same names.
extern "C" {

void* malloc(size_t bytes) {
  return FailsToAllocate() ? nullptr : __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  return FailsToAllocate() ? nullptr : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return FailsToAllocate() ? nullptr : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return FailsToAllocate() ? nullptr : __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  if (FailsToAllocate()) return ENOMEM;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}

void* mmap(void* address, size_t bytes, int protection, int flags, int fd,
           off_t offset) {
  if (Fails(FaultyCall::kMap)) return MAP_FAILED;
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, fd, offset));
}

int madvise(void* address, size_t bytes, int advice) noexcept {
  constexpr int kPopulateWrite = 23;
  if (advice == kPopulateWrite && Fails(FaultyCall::kPopulate)) return -1;
  return static_cast<int>(::syscall(SYS_madvise, address, bytes, advice));
}

int memfd_create(const char* name, unsigned flags) {
  if (Fails(FaultyCall::kMemoryFile)) return -1;
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}
int ftruncate(int fd, off_t bytes) {
  if (Fails(FaultyCall::kSize)) return -1;
  return static_cast<int>(::syscall(SYS_ftruncate, fd, bytes));
}
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (Fails(FaultyCall::kSize)) return -1;
  return static_cast<int>(::syscall(SYS_fallocate, fd, mode, offset, bytes));
}
int posix_fallocate(int fd, off_t offset, off_t bytes) {
  if (Fails(FaultyCall::kSize)) return errno;
  return next_posix_fallocate.Get()(fd, offset, bytes);
}

int epoll_ctl(int set, int operation, int fd, epoll_event* event) noexcept {
  if (operation != EPOLL_CTL_DEL && Fails(FaultyCall::kWatch)) return -1;
  return static_cast<int>(::syscall(SYS_epoll_ctl, set, operation, fd, event));
}
int epoll_wait(int set, epoll_event* events, int most, int timeout_ms) {
  if (Fails(FaultyCall::kEpollWait)) return -1;
  return static_cast<int>(
      ::syscall(SYS_epoll_wait, set, events, most, timeout_ms));
}
int poll(pollfd* fds, nfds_t count, int timeout_ms) {
  if (Fails(FaultyCall::kPoll)) return -1;
  return static_cast<int>(::syscall(SYS_poll, fds, count, timeout_ms));
}
int eventfd(unsigned value, int flags) {
  if (Fails(FaultyCall::kWakeup)) return -1;
  return static_cast<int>(::syscall(SYS_eventfd2, value, flags));
}

// The third argument, of whatever kind, is a word.
int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  if (command == F_GET_SEALS && Fails(FaultyCall::kAllocateAfterSeals))
    next_allocation_fails = true;
  if (command == F_DUPFD_CLOEXEC && Fails(FaultyCall::kDuplicate)) return -1;
  return static_cast<int>(::syscall(SYS_fcntl, fd, command, argument));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                   void* (*start)(void*), void* argument) {
  if (Fails(FaultyCall::kThread)) return errno;
  if (IsPlan(FaultyCall::kOwnThread) && IsOfStandardLibrary(start) &&
      Fails(FaultyCall::kOwnThread)) {
    return errno;
  }
  return next_pthread_create.Get()(thread, attributes, start, argument);
}

int fsync(int fd) { return Sync(SYS_fsync, fd); }
int fdatasync(int fd) { return Sync(SYS_fdatasync, fd); }
ssize_t pread(int fd, void* bytes, size_t count, off_t offset) {
  return ReadAt(fd, bytes, count, offset);
}
ssize_t pread64(int fd, void* bytes, size_t count, off64_t offset) {
  return ReadAt(fd, bytes, count, offset);
}

int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int got = next_clock_gettime.Get()(clock, time);
  if (plan != nullptr && clock == CLOCK_REALTIME)
    time->tv_sec += plan->wall_seconds.load(std::memory_order_relaxed);
  return got;
}

int accept4(int fd, sockaddr* peer, socklen_t* size, int flags) {
  if (Fails(FaultyCall::kAccept)) return -1;
  return static_cast<int>(::syscall(SYS_accept4, fd, peer, size, flags));
}
int connect(int fd, const sockaddr* peer, socklen_t size) {
  if (Fails(FaultyCall::kConnect)) return -1;
  return static_cast<int>(::syscall(SYS_connect, fd, peer, size));
}
int getsockopt(int fd, int level, int option, void* value,
               socklen_t* size) noexcept {
  if (option == SO_PEERPIDFD && Fails(FaultyCall::kPidfd)) return -1;
  return static_cast<int>(
      ::syscall(SYS_getsockopt, fd, level, option, value, size));
}

// gmbd's own sendmsg and recvmsg come here; a system call has six words at the
// most.
long syscall(long number, ...) noexcept {
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  const int fd = static_cast<int>(words[0]);
  if ((number == SYS_sendmsg && FailsOn(fd, Way::kSend)) ||
      (number == SYS_recvmsg && FailsOn(fd, Way::kReceive)) ||
      (number == SYS_pidfd_open && Fails(FaultyCall::kPidfd))) {
    return -1;
  }
  return next_syscall.Get()(number, words[0], words[1], words[2], words[3],
                            words[4], words[5]);
}

}  // extern "C"
