// Files that a broker of memory does not expect.
#include "tests/attack/odd_files.h"

#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/userfaultfd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <utility>

#include "tests/attack/send_fds.h"

namespace gmb::attack {
namespace {

// One set watches another one, which watches an eventfd.
int NestedEpoll() {
  const int outer = ::epoll_create1(EPOLL_CLOEXEC);
  const base::UniqueFd inner(::epoll_create1(EPOLL_CLOEXEC));
  const base::UniqueFd event(::eventfd(1, EFD_CLOEXEC));
  epoll_event wanted{.events = EPOLLIN, .data = {}};
  ::epoll_ctl(inner.get(), EPOLL_CTL_ADD, event.get(), &wanted);
  ::epoll_ctl(outer, EPOLL_CTL_ADD, inner.get(), &wanted);
  return outer;
}

int SealedMemory() {
  const int memory = ::memfd_create("odd", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0 || ::ftruncate(memory, 4096) != 0) return memory;
  ::fcntl(memory, F_ADD_SEALS,
          F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
  return memory;
}

int HugeMemory() {
  const int memory = ::memfd_create("odd", MFD_CLOEXEC);
  if (memory >= 0) (void)::ftruncate(memory, off_t{1} << 46);
  return memory;
}

int SecretMemory() {
  const int memory = static_cast<int>(::syscall(SYS_memfd_secret, O_CLOEXEC));
  if (memory >= 0) (void)::ftruncate(memory, 4096);
  return memory;
}

// A process that touches its page waits for the reader of the fd.
int WatchedMemory() {
  const int watch = static_cast<int>(
      ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY));
  uffdio_api api{.api = UFFD_API, .features = 0, .ioctls = 0};
  if (watch < 0 || ::ioctl(watch, UFFDIO_API, &api) != 0) return watch;
  void* const page = ::mmap(nullptr, 4096, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uffdio_register whole{};
  whole.range = {.start = reinterpret_cast<uintptr_t>(page), .len = 4096};
  whole.mode = UFFDIO_REGISTER_MODE_MISSING;
  (void)::ioctl(watch, UFFDIO_REGISTER, &whole);
  return watch;
}

// Of a process that has ended, and is not waited for.
int PidfdOfTheDead() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  return static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
}

int OpenRing() {
  io_uring_params parameters{};
  return static_cast<int>(::syscall(SYS_io_uring_setup, 8, &parameters));
}

// One end of a pair that lies unread in that very pair.
int SocketInItself() {
  SocketPair pair = MakeSocketPair(SOCK_DGRAM);
  std::vector<base::UniqueFd> sent;
  sent.emplace_back(::dup(pair.ends[1].get()));
  (void)SendFds(pair.ends[0].get(), "x", sent);
  return pair.ends[0].release();
}

int FullPipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return -1;
  const std::string bytes(4096, 'x');
  while (::write(ends[1], bytes.data(), bytes.size()) > 0) {
  }
  ::close(ends[0]);
  return ends[1];
}

int AllSignals() {
  sigset_t all;
  ::sigfillset(&all);
  return ::signalfd(-1, &all, SFD_CLOEXEC);
}

}  // namespace

SocketPair MakeSocketPair(int type) {
  int ends[2] = {-1, -1};
  (void)::socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, ends);
  SocketPair pair;
  pair.ends[0].reset(ends[0]);
  pair.ends[1].reset(ends[1]);
  return pair;
}

std::vector<OddFile> MakeOddFiles() {
  const std::pair<const char*, int> made[] = {
      {"epoll", NestedEpoll()},
      {"eventfd", ::eventfd(0, EFD_CLOEXEC)},
      {"timerfd", ::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)},
      {"signalfd", AllSignals()},
      {"inotify", ::inotify_init1(IN_CLOEXEC)},
      {"io_uring", OpenRing()},
      {"sealed_memory", SealedMemory()},
      {"huge_memory", HugeMemory()},
      {"huge_pages", ::memfd_create("odd", MFD_CLOEXEC | MFD_HUGETLB)},
      {"pidfd", static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0))},
      {"pidfd_of_the_dead", PidfdOfTheDead()},
      {"secret_memory", SecretMemory()},
      {"watched_memory", WatchedMemory()},
      {"path", ::open("/proc", O_PATH | O_CLOEXEC)},
      {"directory", ::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)},
      {"device", ::open("/dev/zero", O_RDWR | O_CLOEXEC)},
      {"pipe", FullPipe()},
      {"socket_in_itself", SocketInItself()},
  };
  std::vector<OddFile> files;
  for (const auto& [kind, fd] : made) {
    if (fd >= 0) files.push_back({kind, base::UniqueFd(fd)});
  }
  return files;
}

}  // namespace gmb::attack
