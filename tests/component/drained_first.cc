// Preloaded into gmb: a drain of the broker that it tells to detach begins just
// before that, as by another command that comes between its look and its word.
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdarg>

namespace {

using Function = long (*)(long, ...);
// Not a static of the function: what guards those may call it.
std::atomic<Function> next = nullptr;

}  // namespace

// The arguments, of whatever kind, are words.
extern "C" long syscall(long number, ...) noexcept {
  if (next == nullptr)
    next = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "syscall"));
  va_list arguments;
  va_start(arguments, number);
  long words[6];
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  if (number == SYS_pidfd_send_signal && words[1] == SIGUSR2)
    next.load()(number, words[0], SIGUSR1, nullptr, 0);
  return next.load()(number, words[0], words[1], words[2], words[3], words[4],
                     words[5]);
}
