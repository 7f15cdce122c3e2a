// Runs a program as an older kernel would, which does not know some options of
// sockets:
//
//   old_kernel [--without-passrights] [--without-peerpidfd] PROGRAM ARGUMENT...
//
// SO_PASSRIGHTS came with Linux 6.16, SO_PEERPIDFD with 6.5.
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace {

constexpr uint32_t kPeerPidfd = 77;
constexpr uint32_t kPassRights = 83;
constexpr int kCannotRun = 127;

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
#error "the filter does not know this architecture"
#endif

// The low half of the words that a filter may look at.
uint32_t Argument(int number) {
  return static_cast<uint32_t>(offsetof(seccomp_data, args) +
                               sizeof(uint64_t) * static_cast<size_t>(number));
}

sock_filter Load(size_t offset) {
  return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset));
}
sock_filter Return(uint32_t what) { return BPF_STMT(BPF_RET | BPF_K, what); }
// Goes on with the next instruction where it is equal, and skips so many where
// it is not.
sock_filter Unless(uint32_t value, size_t skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0,
                  static_cast<uint8_t>(skip));
}

// Answers that the option is unknown, to setsockopt and getsockopt alike.
void Forbid(uint32_t option, std::vector<sock_filter>* filter) {
  for (const uint32_t call : {SYS_setsockopt, SYS_getsockopt}) {
    filter->push_back(Load(offsetof(seccomp_data, nr)));
    filter->push_back(Unless(call, 5));
    filter->push_back(Load(Argument(1)));
    filter->push_back(Unless(SOL_SOCKET, 3));
    filter->push_back(Load(Argument(2)));
    filter->push_back(Unless(option, 1));
    filter->push_back(Return(SECCOMP_RET_ERRNO | ENOPROTOOPT));
  }
}

bool Install(const std::vector<uint32_t>& options) {
  std::vector<sock_filter> filter = {
      Load(offsetof(seccomp_data, arch)), Unless(kArchitecture, 1),
      // Skips the return that is for others.
      BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0), Return(SECCOMP_RET_ALLOW)};
  for (const uint32_t option : options) Forbid(option, &filter);
  filter.push_back(Return(SECCOMP_RET_ALLOW));
  sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                     .filter = filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<uint32_t> options;
  int at = 1;
  for (; at < argc && std::string(argv[at]).rfind("--without-", 0) == 0; ++at) {
    options.push_back(std::string(argv[at]) == "--without-passrights"
                          ? kPassRights
                          : kPeerPidfd);
  }
  if (at == argc) return kCannotRun;
  if (!Install(options)) {
    std::perror("old_kernel: cannot filter system calls");
    return kCannotRun;
  }
  ::execvp(argv[at], argv + at);
  std::perror("old_kernel");
  return kCannotRun;
}
