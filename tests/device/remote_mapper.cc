#include "tests/device/remote_mapper.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/device/remote_mapper_wire.h"

extern char** environ;

namespace gmb::device {
namespace {

using remote::Op;
using remote::Reply;
using remote::Request;

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteMapper>> RemoteMapper::Start(
    const DeviceInfo& info) {
  return Start(info, Options{});
}

absl::StatusOr<std::unique_ptr<RemoteMapper>> RemoteMapper::Start(
    const DeviceInfo& info, Options options) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0) {
    return absl::ErrnoToStatus(errno, "socketpair");
  }
  base::UniqueFd ours(pair[0]);
  base::UniqueFd theirs(pair[1]);
  std::array<std::string, 7> args = {
      program_invocation_short_name,
      remote::kRole,
      absl::StrCat(static_cast<int>(info.kind)),
      info.uuid,
      absl::StrCat(info.total_bytes),
      absl::StrCat(info.granularity_bytes),
      options.own_namespaces ? "namespaces" : "plain"};
  std::vector<char*> argv;
  for (std::string& arg : args) argv.push_back(arg.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs.get(), remote::kSocket);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return absl::ErrnoToStatus(error, "start a remote mapper");
  theirs.reset();
  std::unique_ptr<RemoteMapper> remote(new RemoteMapper(pid, std::move(ours)));
  Reply hello;
  if (recv(remote->socket_.get(), &hello, sizeof(hello), 0) != sizeof(hello)) {
    return absl::UnavailableError("the remote mapper died at its start");
  }
  if (hello.code != 0) {
    return absl::Status(static_cast<absl::StatusCode>(hello.code),
                        hello.message.data());
  }
  return remote;
}

RemoteMapper::~RemoteMapper() { Kill(); }

void RemoteMapper::Kill() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  // With namespaces the mapper is a grandchild: gone when its socket is.
  Reply reply;
  while (recv(socket_.get(), &reply, sizeof(reply), 0) > 0) {
  }
}

absl::StatusOr<uint64_t> RemoteMapper::Call(const Request& request, int fd) {
  if (!remote::SendPacket(socket_.get(), &request, sizeof(request), fd)) {
    return absl::ErrnoToStatus(errno, "tell the remote mapper");
  }
  Reply reply;
  received_.reset();
  if (!remote::ReceivePacket(socket_.get(), &reply, sizeof(reply),
                             &received_)) {
    return absl::UnavailableError("the remote mapper died");
  }
  address_ = reply.address;
  elapsed_ = absl::Nanoseconds(reply.elapsed_ns);
  if (reply.code != 0) {
    return absl::Status(static_cast<absl::StatusCode>(reply.code),
                        reply.message.data());
  }
  return reply.value;
}

absl::Status RemoteMapper::Reserve(uint64_t bytes, Protection protection) {
  return Call({.op = Op::kReserve,
               .bytes = bytes,
               .value = static_cast<uint64_t>(protection)})
      .status();
}

absl::Status RemoteMapper::AddSlab(const ShareableHandle& handle,
                                   uint64_t bytes, bool keep_fd) {
  Request request{.op = Op::kAddSlab, .keep_fd = keep_fd, .bytes = bytes};
  if (const auto* ipc_handle = std::get_if<IpcHandle>(&handle)) {
    request.ipc_handle = *ipc_handle;
    return Call(request).status();
  }
  return Call(request, std::get<base::UniqueFd>(handle).get()).status();
}

absl::Status RemoteMapper::Map() { return Call({.op = Op::kMap}).status(); }

absl::Status RemoteMapper::Unmap() { return Call({.op = Op::kUnmap}).status(); }

absl::Status RemoteMapper::FreeRange() {
  return Call({.op = Op::kFreeRange}).status();
}

absl::Status RemoteMapper::Fill(uint64_t offset, uint64_t bytes,
                                uint8_t value) {
  return Call({.op = Op::kFill,
               .offset = offset,
               .bytes = bytes,
               .value = value})
      .status();
}

absl::StatusOr<uint64_t> RemoteMapper::CountOther(uint64_t offset,
                                                  uint64_t bytes,
                                                  uint8_t value) {
  return Call({.op = Op::kCountOther,
               .offset = offset,
               .bytes = bytes,
               .value = value});
}

absl::Status RemoteMapper::WritePattern(uint64_t offset, uint64_t bytes,
                                        uint64_t seed) {
  return Call({.op = Op::kWritePattern,
               .offset = offset,
               .bytes = bytes,
               .value = seed})
      .status();
}

absl::StatusOr<uint64_t> RemoteMapper::CountPatternErrors(uint64_t offset,
                                                          uint64_t bytes,
                                                          uint64_t seed) {
  return Call({.op = Op::kCountPatternErrors,
               .offset = offset,
               .bytes = bytes,
               .value = seed});
}

absl::StatusOr<uint64_t> RemoteMapper::CountOpenFds() {
  return Call({.op = Op::kCountOpenFds});
}

absl::Status RemoteMapper::Synchronize() {
  return Call({.op = Op::kSynchronize}).status();
}

absl::StatusOr<ShareableHandle> RemoteMapper::CreateSlab(uint64_t bytes) {
  const absl::StatusOr<uint64_t> created =
      Call({.op = Op::kCreateSlab, .bytes = bytes});
  if (!created.ok()) return created.status();
  return ShareableHandle(std::move(received_));
}

absl::Status RemoteMapper::CallHook() {
  return Call({.op = Op::kCallHook}).status();
}

}  // namespace gmb::device
