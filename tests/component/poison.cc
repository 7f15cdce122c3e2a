// Preloaded into gmbd: ends it when it looks at the seals of one file, as a
// driver may that is handed one piece of memory too many. GMB_POISON_INODE says
// which.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstdarg>
#include <cstdlib>

namespace {

bool IsPoison(int fd) {
  const char* const inode = std::getenv("GMB_POISON_INODE");
  struct stat info {};
  return inode != nullptr && fstat(fd, &info) == 0 &&
         info.st_ino == std::strtoull(inode, nullptr, 10);
}

int Ask(const char* name, int fd, int command, void* argument) {
  if (command == F_GET_SEALS && IsPoison(fd)) std::abort();
  using Function = int (*)(int, int, ...);
  static const auto next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
  return next(fd, command, argument);
}

}  // namespace

// The third argument, of whatever kind, is a word.
extern "C" int fcntl(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Ask("fcntl", fd, command, argument);
}

extern "C" int fcntl64(int fd, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return Ask("fcntl64", fd, command, argument);
}
