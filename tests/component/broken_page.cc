// Preloaded into gmbd: copies that touch a mapping of one file meet a page that
// the machine cannot read, as the kernel tells it. GMB_BROKEN_INODE says which
// file; the kernels that tests run on cannot break a page themselves.
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>

namespace {

// The mapping that was made last.
std::atomic<const char*> broken = nullptr;
std::atomic<size_t> broken_bytes = 0;

bool IsBroken(int fd) {
  const char* const inode = std::getenv("GMB_BROKEN_INODE");
  struct stat info {};
  return fd >= 0 && inode != nullptr && fstat(fd, &info) == 0 &&
         info.st_ino == std::strtoull(inode, nullptr, 10);
}

bool Touches(const void* address) {
  const char* const at = static_cast<const char*>(address);
  const char* const begin = broken;
  return begin != nullptr && at >= begin && at < begin + broken_bytes;
}

void TellAsTheKernelDoes(const void* address) {
  siginfo_t info{};
  info.si_signo = SIGBUS;
  info.si_code = BUS_MCEERR_AR;
  info.si_addr = const_cast<void*>(address);
  syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), SIGBUS, &info);
}

void* Map(const char* name, void* address, size_t bytes, int protection,
          int flags, int fd, off_t offset) {
  using Function = void* (*)(void*, size_t, int, int, int, off_t);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  void* const mapped = next(address, bytes, protection, flags, fd, offset);
  if (mapped != MAP_FAILED && IsBroken(fd)) {
    broken_bytes = bytes;
    broken = static_cast<const char*>(mapped);
  }
  return mapped;
}

}  // namespace

extern "C" void* mmap(void* address, size_t bytes, int protection, int flags,
                      int fd, off_t offset) {
  return Map("mmap", address, bytes, protection, flags, fd, offset);
}
extern "C" void* mmap64(void* address, size_t bytes, int protection, int flags,
                        int fd, off_t offset) {
  return Map("mmap64", address, bytes, protection, flags, fd, offset);
}

extern "C" void* memcpy(void* to, const void* from, size_t bytes) {
  if (Touches(to) || Touches(from)) TellAsTheKernelDoes(from);
  return memmove(to, from, bytes);
}
