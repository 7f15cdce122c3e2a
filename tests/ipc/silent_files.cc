// A file system whose server opens files and writes nothing.
#include "tests/ipc/silent_files.h"

#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/end_with_parent.h"

namespace gmb::testing {
namespace {

// It does not stay for ever, whatever becomes of those who wait for it.
constexpr unsigned kMostSeconds = 300;
constexpr uint64_t kLong = 3600;  // seconds for which the kernel may remember
constexpr size_t kPage = 4096;

absl::Status Impossible(const char* what) {
  return absl::FailedPreconditionError(
      absl::StrCat("no FUSE here: ", what, ": ", ::strerrordesc_np(errno)));
}

template <typename Answer>
void Reply(int fuse, const fuse_in_header& request, const Answer& answer) {
  fuse_out_header header{};
  header.len = sizeof(header) + sizeof(answer);
  header.unique = request.unique;
  const iovec parts[] = {{&header, sizeof(header)},
                         {const_cast<Answer*>(&answer), sizeof(answer)}};
  (void)::writev(fuse, parts, 2);
}

// Without anything but an error, or 0.
void Reply(int fuse, const fuse_in_header& request, int error) {
  fuse_out_header header{};
  header.len = sizeof(header);
  header.unique = request.unique;
  header.error = -error;
  (void)::write(fuse, &header, sizeof(header));
}

fuse_attr AttributesOf(uint64_t node) {
  fuse_attr attributes{};
  attributes.ino = node;
  attributes.mode = node == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0666;
  attributes.nlink = 1;
  return attributes;
}

// Every number names a file, the node after that.
fuse_entry_out EntryOf(const char* name) {
  fuse_entry_out entry{};
  entry.nodeid = FUSE_ROOT_ID + std::strtoull(name, nullptr, 10);
  entry.entry_valid = kLong;
  entry.attr_valid = kLong;
  entry.attr = AttributesOf(entry.nodeid);
  return entry;
}

// WRITE and SETATTR, by which changes are written, are never answered.
void AnswerOne(int fuse, const fuse_in_header& request) {
  switch (request.opcode) {
    case FUSE_INIT: {
      fuse_init_out answer{};
      answer.major = FUSE_KERNEL_VERSION;
      answer.minor = FUSE_KERNEL_MINOR_VERSION;
      answer.max_write = kPage;
      answer.flags = FUSE_WRITEBACK_CACHE;
      return Reply(fuse, request, answer);
    }
    case FUSE_LOOKUP:
      return Reply(fuse, request,
                   EntryOf(reinterpret_cast<const char*>(&request + 1)));
    case FUSE_GETATTR: {
      fuse_attr_out answer{};
      answer.attr_valid = kLong;
      answer.attr = AttributesOf(request.nodeid);
      return Reply(fuse, request, answer);
    }
    case FUSE_OPEN:
      return Reply(fuse, request, fuse_open_out{});
    case FUSE_FLUSH:
      return Reply(fuse, request, 0);
    case FUSE_GETXATTR:
      return Reply(fuse, request, ENOSYS);
    default:
      return;
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

absl::StatusOr<std::unique_ptr<SilentFiles>> SilentFiles::Mount(
    const std::string& directory) {
  // First, so that its fd is lower than those of the files: a process that ends
  // closes it before them.
  int alive[2];
  if (::pipe2(alive, O_CLOEXEC) != 0) return Impossible("pipe");
  base::UniqueFd theirs(alive[0]);
  base::UniqueFd ours(alive[1]);
  if (::unshare(CLONE_NEWNS) != 0) return Impossible("unshare");
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return Impossible("private mounts");
  base::UniqueFd fuse(::open("/dev/fuse", O_RDWR | O_CLOEXEC));
  if (!fuse.valid()) return Impossible("/dev/fuse");
  const std::string path = absl::StrCat(directory, "/silent-", ::getpid());
  (void)::mkdir(path.c_str(), 0700);
  const std::string data =
      absl::StrCat("fd=", fuse.get(), ",rootmode=40000,user_id=0,group_id=0");
  if (::mount("gmb-silent", path.c_str(), "fuse", MS_NOSUID | MS_NODEV,
              data.c_str()) != 0) {
    return Impossible("mount");
  }
  const pid_t parent = ::getpid();
  const pid_t server = ::fork();
  if (server == 0) {
    EndWithParent(parent);
    ours.reset();
    Serve(fuse.get(), theirs.get());
  }
  base::UniqueFd root(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  (void)::umount2(path.c_str(), MNT_DETACH);
  (void)::rmdir(path.c_str());
  if (server < 0 || !root.valid()) return Impossible("fork or open");
  return std::unique_ptr<SilentFiles>(
      new SilentFiles(std::move(root), server, std::move(ours)));
}

SilentFiles::~SilentFiles() {
  alive_.reset();
  ::waitpid(server_, nullptr, 0);
}

base::UniqueFd SilentFiles::OpenLast() const {
  return base::UniqueFd(
      ::openat(root_.get(), absl::StrCat(last_).c_str(), O_RDWR | O_CLOEXEC));
}

base::UniqueFd SilentFiles::Open() {
  ++last_;
  return OpenLast();
}

void SilentFiles::ChangeLast() {
  changed_.push_back(OpenLast());
  const std::array<char, kPage> page{};
  (void)::pwrite(changed_.back().get(), page.data(), page.size(), 0);
}

}  // namespace gmb::testing
