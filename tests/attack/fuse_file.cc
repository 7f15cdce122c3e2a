// A file system that opens its only file and then falls silent.
#include "tests/attack/fuse_file.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::attack {
namespace {

// It does not stay for ever, whatever becomes of those who wait for it.
constexpr unsigned kMostSeconds = 300;

absl::Status Impossible(const char* what) {
  return absl::FailedPreconditionError(
      absl::StrCat("no FUSE here: ", what, ": ", ::strerrordesc_np(errno)));
}

template <typename Answer>
void Reply(int fuse, uint64_t unique, const Answer& answer) {
  fuse_out_header header{};
  header.len = sizeof(header) + sizeof(answer);
  header.unique = unique;
  const iovec parts[] = {{&header, sizeof(header)},
                         {const_cast<Answer*>(&answer), sizeof(answer)}};
  (void)::writev(fuse, parts, 2);
}

void AnswerOne(int fuse, const fuse_in_header& request) {
  if (request.opcode == FUSE_INIT) {
    fuse_init_out answer{};
    answer.major = FUSE_KERNEL_VERSION;
    answer.minor = FUSE_KERNEL_MINOR_VERSION;
    answer.max_write = 4096;
    Reply(fuse, request.unique, answer);
  } else if (request.opcode == FUSE_GETATTR) {
    fuse_attr_out answer{};
    answer.attr_valid = 3600;
    answer.attr.ino = FUSE_ROOT_ID;
    answer.attr.mode = S_IFREG | 0666;
    answer.attr.nlink = 1;
    Reply(fuse, request.unique, answer);
  } else if (request.opcode == FUSE_OPEN) {
    Reply(fuse, request.unique, fuse_open_out{});
  }
}

// Until the other end of `alive` is closed.
[[noreturn]] void Serve(int fuse, int alive) {
  ::alarm(kMostSeconds);
  ::signal(SIGTERM, SIG_DFL);
  alignas(fuse_in_header) std::array<char, 65'536> bytes;
  while (true) {
    std::array<pollfd, 2> waits{
        {{.fd = fuse, .events = POLLIN, .revents = 0},
         {.fd = alive, .events = POLLIN, .revents = 0}}};
    if (::poll(waits.data(), waits.size(), -1) <= 0) continue;
    if (waits[1].revents != 0) ::_exit(0);
    if (::read(fuse, bytes.data(), bytes.size()) >=
        static_cast<ssize_t>(sizeof(fuse_in_header))) {
      AnswerOne(fuse, *reinterpret_cast<const fuse_in_header*>(bytes.data()));
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<FuseFile>> FuseFile::Mount(
    const std::string& directory) {
  // First, so that its fd is lower than those of the files: a process that ends
  // closes it before them.
  int alive[2];
  if (::pipe2(alive, O_CLOEXEC) != 0) return Impossible("pipe");
  ipc::UniqueFd theirs(alive[0]);
  ipc::UniqueFd ours(alive[1]);
  if (::unshare(CLONE_NEWNS) != 0) return Impossible("unshare");
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Impossible("private mounts");
  ipc::UniqueFd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!fuse.valid()) return Impossible("/dev/fuse");
  const std::string path = absl::StrCat(directory, "/fuse-", ::getpid());
  { const ipc::UniqueFd made(::open(path.c_str(), O_CREAT | O_WRONLY, 0600)); }
  const std::string data =
      absl::StrCat("fd=", fuse.get(), ",rootmode=100000,user_id=0,group_id=0");
  if (::mount("gmb-attack", path.c_str(), "fuse", MS_NOSUID | MS_NODEV,
              data.c_str()) != 0) {
    return Impossible("mount");
  }
  const pid_t server = ::fork();
  if (server == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ours.reset();
    Serve(fuse.get(), theirs.get());
  }
  if (server < 0) return Impossible("fork");
  return std::unique_ptr<FuseFile>(new FuseFile(path, server, std::move(ours)));
}

FuseFile::~FuseFile() {
  alive_.reset();
  ::waitpid(server_, nullptr, 0);
}

int FuseFile::Open() {
  open_.emplace_back(::open(path_.c_str(), O_RDWR | O_CLOEXEC));
  return open_.back().get();
}

}  // namespace gmb::attack
