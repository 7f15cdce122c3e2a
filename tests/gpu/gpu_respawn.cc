#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

// Does what a supervisor does: kills a process, waits for the kernel to say
// that it is dead, and becomes the next one at once.
//
//   gpu_respawn PID RECORD PROGRAM [ARGUMENTS...]
//
// RECORD gets "killed_ns N dead_ns N wall_ns N": the times of SIGKILL and of the
// pidfd, CLOCK_MONOTONIC, and that of the pidfd by the wall clock.
namespace {

int64_t Now() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

int Fail(const char* what) {
  std::fprintf(stderr, "gpu_respawn: %s: %m\n", what);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu_respawn PID RECORD PROGRAM...\n");
    return 2;
  }
  const int pidfd =
      static_cast<int>(syscall(SYS_pidfd_open, std::atoi(argv[1]), 0));
  if (pidfd < 0) return Fail("pidfd_open");
  const int64_t killed = Now();
  if (syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, nullptr, 0) != 0)
    return Fail("pidfd_send_signal");
  pollfd dies{pidfd, POLLIN, 0};
  while (poll(&dies, 1, -1) != 1) {
    if (errno != EINTR) return Fail("poll");
  }
  const int64_t dead = Now();
  const int64_t wall = std::chrono::nanoseconds(
                           std::chrono::system_clock::now().time_since_epoch())
                           .count();
  close(pidfd);
  std::FILE* const record = std::fopen(argv[2], "we");
  if (record == nullptr) return Fail(argv[2]);
  std::fprintf(record, "killed_ns %ld dead_ns %ld wall_ns %ld\n", killed, dead,
               wall);
  std::fclose(record);
  execvp(argv[3], argv + 3);
  return Fail(argv[3]);
}
