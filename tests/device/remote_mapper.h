#ifndef GMB_TESTS_DEVICE_REMOTE_MAPPER_H_
#define GMB_TESTS_DEVICE_REMOTE_MAPPER_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "device/handle.h"
#include "device/mapper.h"
#include "tests/device/remote_mapper_wire.h"

namespace gmb::device {

// A client process under remote control: it opens the Mapper of a device, owns
// one range, and does what it is told over a socket that also carries the
// slabs. It is this same program started afresh (never a bare fork, which
// CUDA does not survive), so main() must begin with RunIfRemoteMapper().
// Not thread-safe. Killed and reaped when destroyed.
class RemoteMapper {
 public:
  struct Options {
    // PID, IPC, network, UTS and mount namespaces of its own, with /proc
    // mounted for them. Start is PERMISSION_DENIED where that is not allowed.
    bool own_namespaces = false;
  };

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<RemoteMapper>> Start(
      const DeviceInfo& info, Options options);
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<RemoteMapper>> Start(
      const DeviceInfo& info);

  RemoteMapper(const RemoteMapper&) = delete;
  RemoteMapper& operator=(const RemoteMapper&) = delete;
  ~RemoteMapper();

  // The calls of Mapper and MappedRange, made over there.
  [[nodiscard]] absl::Status Reserve(
      uint64_t bytes, Protection protection = Protection::kReadWrite);
  // Sends one more slab for the next Map. The caller keeps `handle`.
  // `keep_fd`: the client also keeps a duplicate, until it dies.
  [[nodiscard]] absl::Status AddSlab(const ShareableHandle& handle,
                                     uint64_t bytes, bool keep_fd = false);
  [[nodiscard]] absl::Status Map();
  [[nodiscard]] absl::Status Unmap();
  [[nodiscard]] absl::Status FreeRange();
  [[nodiscard]] absl::Status Fill(uint64_t offset, uint64_t bytes,
                                  uint8_t value);

  // Bytes of the range that differ from `value`.
  [[nodiscard]] absl::StatusOr<uint64_t> CountOther(uint64_t offset,
                                                    uint64_t bytes,
                                                    uint8_t value);
  // Writes, and counts deviations from, 8-byte words that depend on their
  // place in the range and on `seed`. `offset` and `bytes` in multiples of 8.
  [[nodiscard]] absl::Status WritePattern(uint64_t offset, uint64_t bytes,
                                          uint64_t seed);
  [[nodiscard]] absl::StatusOr<uint64_t> CountPatternErrors(uint64_t offset,
                                                            uint64_t bytes,
                                                            uint64_t seed);
  [[nodiscard]] absl::StatusOr<uint64_t> CountOpenFds();

  [[nodiscard]] absl::Status Synchronize();

  // Opens the device's Allocator over there, as a broker does, and creates a
  // slab that lives as long as that process. Its handle is the caller's.
  [[nodiscard]] absl::StatusOr<ShareableHandle> CreateSlab(uint64_t bytes);

  // Calls the hook that the program gave to RunIfRemoteMapper.
  [[nodiscard]] absl::Status CallHook();

  // Where the range lies in the client, as of the last Reserve or Map.
  [[nodiscard]] uint64_t address() const { return address_; }
  // How long the last call took over there, without the socket.
  [[nodiscard]] absl::Duration elapsed() const { return elapsed_; }
  [[nodiscard]] pid_t pid() const { return pid_; }

  // SIGKILL, and waits until it is gone.
  void Kill();

 private:
  RemoteMapper(pid_t pid, base::UniqueFd socket)
      : pid_(pid), socket_(std::move(socket)) {}

  absl::StatusOr<uint64_t> Call(const remote::Request& request, int fd = -1);

  pid_t pid_;
  base::UniqueFd socket_;
  base::UniqueFd received_;  // with the last reply
  uint64_t address_ = 0;
  absl::Duration elapsed_;
};

// Takes over the process and returns its exit status if this process was
// started as a remote mapper; otherwise returns nothing, at once.
// `hook` does something special with the mapped range when told to.
using RemoteHook = absl::Status (*)(const Mapper& mapper, MappedRange* range);
[[nodiscard]] std::optional<int> RunIfRemoteMapper(int argc, char** argv,
                                                   RemoteHook hook = nullptr);

// Open descriptors of this process.
[[nodiscard]] uint64_t CountOpenFds();

}  // namespace gmb::device

#endif  // GMB_TESTS_DEVICE_REMOTE_MAPPER_H_
