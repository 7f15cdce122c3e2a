#ifndef GMB_CLIENT_CLI_DEMO_LINE_CHANNEL_H_
#define GMB_CLIENT_CLI_DEMO_LINE_CHANNEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace gmb::cli {

struct ChannelPair;

// One end of a socket over which two processes exchange lines of text. Owns
// its fd. Move-only; one thread may send while another receives.
class LineChannel {
 public:
  // Both ends are close-on-exec.
  [[nodiscard]] static absl::StatusOr<ChannelPair> Pair();

  explicit LineChannel(int fd) : fd_(fd) {}
  LineChannel(LineChannel&& other) noexcept;
  LineChannel& operator=(LineChannel&& other) noexcept;
  ~LineChannel();

  // Blocks while the other end does not read. UNAVAILABLE when it is gone.
  [[nodiscard]] absl::Status Send(std::string line) const;

  // The next line, without its end. UNAVAILABLE: the other end is gone.
  // DEADLINE_EXCEEDED: nothing came. CANCELLED: `interrupt_fd` (-1: none)
  // became readable.
  [[nodiscard]] absl::StatusOr<std::string> Receive(absl::Time deadline,
                                                    int interrupt_fd = -1);

  [[nodiscard]] int fd() const { return fd_; }

 private:
  absl::Status ReadMore();

  int fd_;
  std::string received_;
};

struct ChannelPair {
  LineChannel ours;
  LineChannel theirs;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_LINE_CHANNEL_H_
