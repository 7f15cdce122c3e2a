#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/clock.h"
#include "device/devices.h"
#include "tests/device/remote_mapper.h"
#include "tests/device/remote_mapper_wire.h"

namespace gmb::device {
namespace {

using remote::kRole;
using remote::kSocket;
using remote::Op;
using remote::Reply;
using remote::Request;

constexpr uint64_t kChunkBytes = uint64_t{4} << 20;

uint64_t PatternWord(uint64_t offset, uint64_t seed) {
  return (offset + seed) * 0x9E3779B97F4A7C15u;
}

// The process at the other end of the socket.
class RemoteMapperProcess {
 public:
  static int Run(const DeviceInfo& info, RemoteHook hook) {
    RemoteMapperProcess process;
    process.hook_ = hook;
    absl::StatusOr<std::unique_ptr<Mapper>> mapper = OpenMapper(info);
    Answer(mapper.status(), {});
    if (!mapper.ok()) return 1;
    process.mapper_ = *std::move(mapper);
    while (process.ServeOne()) {
    }
    return 0;
  }

  static void Answer(const absl::Status& status, Reply reply, int fd = -1) {
    reply.code = static_cast<int32_t>(status.code());
    const size_t length =
        std::min(status.message().size(), reply.message.size() - 1);
    std::copy_n(status.message().begin(), length, reply.message.begin());
    (void)remote::SendPacket(kSocket, &reply, sizeof(reply), fd);
  }

 private:
  bool ServeOne() {
    Request request;
    base::UniqueFd fd;
    if (!Receive(&request, &fd)) return false;
    Reply reply;
    const absl::Time start = absl::Now();
    const absl::StatusOr<uint64_t> value = Do(request, std::move(fd));
    reply.elapsed_ns = absl::ToInt64Nanoseconds(absl::Now() - start);
    if (value.ok()) reply.value = *value;
    if (range_ != nullptr) {
      reply.address = reinterpret_cast<uintptr_t>(range_->data());
    }
    Answer(value.status(), reply, created_.get());
    created_.reset();
    return true;
  }

  static bool Receive(Request* request, base::UniqueFd* fd) {
    return remote::ReceivePacket(kSocket, request, sizeof(*request), fd);
  }

  absl::StatusOr<uint64_t> Do(const Request& request, base::UniqueFd fd) {
    if (request.op == Op::kReserve) return Reserve(request);
    if (request.op == Op::kAddSlab) return AddSlab(request, std::move(fd));
    if (request.op == Op::kCreateSlab) return CreateSlab(request.bytes);
    if (request.op == Op::kCountOpenFds) return CountOpenFds();
    if (request.op == Op::kSynchronize) {
      return Finish(mapper_->Synchronize({mapper_->info().uuid}));
    }
    if (range_ == nullptr) return absl::FailedPreconditionError("no range");
    switch (request.op) {
      case Op::kMap:
        return Finish(range_->Map(std::exchange(handles_, {}),
                                  std::exchange(slab_bytes_, {})));
      case Op::kUnmap:
        return Finish(range_->Unmap());
      case Op::kFreeRange:
        range_.reset();
        return 0;
      case Op::kCallHook:
        return Finish(hook_(*mapper_, range_.get()));
      default:
        return Touch(request);
    }
  }

  static absl::StatusOr<uint64_t> Finish(const absl::Status& status) {
    if (!status.ok()) return status;
    return 0;
  }

  absl::StatusOr<uint64_t> Reserve(const Request& request) {
    absl::StatusOr<std::unique_ptr<MappedRange>> range = mapper_->Reserve(
        request.bytes, {}, static_cast<Protection>(request.value));
    if (!range.ok()) return range.status();
    range_ = *std::move(range);
    return 0;
  }

  absl::StatusOr<uint64_t> AddSlab(const Request& request, base::UniqueFd fd) {
    if (request.keep_fd) {
      kept_.emplace_back(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0));
    }
    if (fd.valid()) {
      handles_.emplace_back(std::move(fd));
    } else {
      handles_.emplace_back(request.ipc_handle);
    }
    slab_bytes_.push_back(request.bytes);
    return 0;
  }

  absl::StatusOr<uint64_t> CreateSlab(uint64_t bytes) {
    if (allocator_ == nullptr) {
      const DeviceInfo& info = mapper_->info();
      absl::StatusOr<std::unique_ptr<Allocator>> opened =
          info.kind == DeviceKind::kHost
              ? OpenHostAllocator({.capacity_bytes = info.total_bytes})
              : OpenVmmAllocator(info.uuid);
      if (!opened.ok()) return opened.status();
      allocator_ = *std::move(opened);
    }
    absl::StatusOr<CreatedSlab> slab = allocator_->Create(bytes);
    if (!slab.ok()) return slab.status();
    created_ = std::get<base::UniqueFd>(std::move(slab->exported));
    return slab->key;
  }

  // Reads or writes the range, piece by piece through a buffer.
  absl::StatusOr<uint64_t> Touch(const Request& request) {
    char* const start = static_cast<char*>(range_->data()) + request.offset;
    if (request.op == Op::kFill) {
      return Finish(mapper_->Fill(start, static_cast<uint8_t>(request.value),
                                  request.bytes));
    }
    uint64_t count = 0;
    for (uint64_t done = 0; done < request.bytes; done += kChunkBytes) {
      const uint64_t bytes = std::min(kChunkBytes, request.bytes - done);
      absl::StatusOr<uint64_t> part =
          TouchChunk(request, start + done, request.offset + done, bytes);
      if (!part.ok()) return part;
      count += *part;
    }
    return count;
  }

  absl::StatusOr<uint64_t> TouchChunk(const Request& request, char* device,
                                      uint64_t offset, uint64_t bytes) {
    buffer_.resize(kChunkBytes / sizeof(uint64_t));
    if (request.op == Op::kWritePattern) {
      for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) {
        buffer_[i] = PatternWord(offset + i * sizeof(uint64_t), request.value);
      }
      return Finish(mapper_->CopyToDevice(device, buffer_.data(), bytes));
    }
    absl::Status status = mapper_->CopyToHost(buffer_.data(), device, bytes);
    if (!status.ok()) return status;
    uint64_t count = 0;
    if (request.op == Op::kCountPatternErrors) {
      for (uint64_t i = 0; i < bytes / sizeof(uint64_t); ++i) {
        const uint64_t at = offset + i * sizeof(uint64_t);
        count += buffer_[i] != PatternWord(at, request.value) ? 1 : 0;
      }
      return count;
    }
    const auto value = static_cast<uint8_t>(request.value);
    const auto* const read = reinterpret_cast<const uint8_t*>(buffer_.data());
    // Usually all are alike, and memcmp is fast in debug builds too.
    if (read[0] == value && std::memcmp(read, read + 1, bytes - 1) == 0) {
      return 0;
    }
    return bytes - std::count(read, read + bytes, value);
  }

  RemoteHook hook_ = nullptr;
  std::unique_ptr<Mapper> mapper_;
  std::unique_ptr<MappedRange> range_;
  std::unique_ptr<Allocator> allocator_;  // of a broker, with CreateSlab
  base::UniqueFd created_;                // goes with the next answer
  std::vector<ShareableHandle> handles_;
  std::vector<uint64_t> slab_bytes_;
  std::vector<base::UniqueFd> kept_;
  std::vector<uint64_t> buffer_;
};

// Moves into namespaces of its own and starts the remote mapper there, as the
// first process of its PID namespace.
int RunInOwnNamespaces(std::vector<char*> args) {
  constexpr int kSpaces =
      CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWNS;
  if (unshare(kSpaces) != 0) {
    RemoteMapperProcess::Answer(
        absl::PermissionDeniedError(absl::StrCat(
            "namespaces of its own need CAP_SYS_ADMIN: ", strerror(errno))),
        {});
    return 1;
  }
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr);
    if (mount("proc", "/proc", "proc", 0, nullptr) != 0) _exit(126);
    execv("/proc/self/exe", args.data());
    _exit(127);
  }
  close(kSocket);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

std::optional<int> RunIfRemoteMapper(int argc, char** argv, RemoteHook hook) {
  if (argc != 7 || absl::string_view(argv[1]) != kRole) return std::nullopt;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  fcntl(kSocket, F_SETFD, FD_CLOEXEC);
  char plain[] = "plain";
  if (absl::string_view(argv[6]) != plain) {
    fcntl(kSocket, F_SETFD, 0);
    return RunInOwnNamespaces(
        {argv[0], argv[1], argv[2], argv[3], argv[4], argv[5], plain, nullptr});
  }
  const DeviceInfo info{.kind = static_cast<DeviceKind>(std::stoi(argv[2])),
                        .uuid = argv[3],
                        .name = "",
                        .total_bytes = std::stoull(argv[4]),
                        .granularity_bytes = std::stoull(argv[5])};
  return RemoteMapperProcess::Run(info, hook);
}

uint64_t CountOpenFds() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  uint64_t count = 0;
  while (const dirent* entry = readdir(directory)) {
    if (entry->d_name[0] != '.') ++count;
  }
  closedir(directory);
  return count - 1;  // the directory itself
}

}  // namespace gmb::device
