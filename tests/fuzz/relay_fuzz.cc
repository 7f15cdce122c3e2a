// A client's HTTP/2 on its way to gRPC, in pieces of any size: what gRPC reads
// is what the client wrote, from its front, and keeps the bounds.
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>
#include <set>
#include <string>

#include "base/unique_fd.h"
#include "broker/gateway/guarded_socket.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tests/ipc/send_fd.h"

namespace gmb::fuzz {
namespace {

using broker::FrameGuard;
using broker::FrameHeader;
using broker::GuardedSocket;

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// One direction, kept as a whole, and cut into frames the simple way.
class WholeStream {
 public:
  explicit WholeStream(size_t first_frame) : next_(first_frame) {}
  // Calls `on_frame` for each header that is complete by now.
  template <typename OnFrame>
  void Add(const std::string& bytes, OnFrame on_frame) {
    all_ += bytes;
    while (next_ + 9 <= all_.size()) {
      const auto at = [&](size_t i) {
        return uint32_t{static_cast<uint8_t>(all_[next_ + i])};
      };
      const FrameHeader frame{
          .length = at(0) * 65536 + at(1) * 256 + at(2),
          .type = static_cast<uint8_t>(at(3)),
          .flags = static_cast<uint8_t>(at(4)),
          .stream = ((at(5) & 127) << 24) + at(6) * 65536 + at(7) * 256 + at(8),
      };
      next_ += 9 + frame.length;
      on_frame(frame);
    }
  }
  [[nodiscard]] const std::string& all() const { return all_; }

 private:
  std::string all_;
  size_t next_;
};

// The most that gRPC may meet.
class Bounds {
 public:
  void OnClient(const FrameHeader& frame) {
    Require(frame.length <= FrameGuard::kMaxFrameBytes,
            "no frame is longer than the bound");
    const bool continues = frame.type == FrameHeader::kContinuation;
    Require(continues == (block_ != 0), "a header block is not broken off");
    if (frame.type == FrameHeader::kRstStream) streams_.erase(frame.stream);
    if (!continues && frame.type != FrameHeader::kHeaders) return;
    if (continues) {
      Require(frame.stream == block_, "a block is of one stream");
      ++continuations_;
    } else {
      Require(frame.stream != 0, "headers are of a stream");
      streams_.insert(block_ = frame.stream);
      block_bytes_ = continuations_ = 0;
    }
    block_bytes_ += frame.length;
    Require(block_bytes_ <= FrameGuard::kMaxHeaderBlockBytes &&
                continuations_ <= FrameGuard::kMaxContinuations,
            "a header block is bounded");
    Require(streams_.size() <= FrameGuard::kMaxStreams,
            "open streams are bounded");
    if ((frame.flags & FrameHeader::kEndHeaders) != 0) block_ = 0;
  }
  void OnServer(const FrameHeader& frame) {
    const bool may_end =
        frame.type == FrameHeader::kData || frame.type == FrameHeader::kHeaders;
    if (frame.type == FrameHeader::kRstStream ||
        (may_end && (frame.flags & FrameHeader::kEndStream) != 0)) {
      streams_.erase(frame.stream);
    }
  }

 private:
  std::set<uint32_t> streams_;
  uint32_t block_ = 0;
  uint64_t block_bytes_ = 0;
  size_t continuations_ = 0;
};

class RelayRun {
 public:
  explicit RelayRun(Bytes bytes) : input_(bytes) {
    std::array<int, 2> pair{};
    Require(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                         pair.data()) == 0,
            "there are sockets");
    client_.reset(pair[0]);
    const double calls = input_.Flag() ? 4 : 1e9;
    pace_ = std::make_shared<broker::CallPace>(calls, calls);
    socket_ = std::make_unique<GuardedSocket>(pair[1], pace_, nullptr, "fuzz",
                                              nullptr);
    paced_ = calls < 1e9;
  }
  ~RelayRun() { socket_->Close(); }
  RelayRun(const RelayRun&) = delete;
  RelayRun& operator=(const RelayRun&) = delete;

  void Go() {
    if (input_.Flag()) Write(kPreface);
    while (!input_.empty()) Step();
    TakeAnswers();
    while (Read(64 * 1024, 0)) {
    }
    const absl::Status breach = socket_->breach();
    Require(breach.ok() || !breach.message().empty(), "a breach is named");
    Require(absl::IsFailedPrecondition(breach) <= sent_fds_,
            "nobody is blamed for fds that were not sent");
    if (!breach.ok() || paced_ || sent_fds_) return;
    Require(passed_.all() == came_, "what keeps the bounds arrives in full");
  }

 private:
  void Step() {
    switch (input_.Below(8)) {
      case 0:
        return Write(input_.ShortText());
      case 1:
        return TakeAnswers();
      case 2:
        return (void)Read(input_.Number<uint16_t>(), input_.Byte());
      case 3:
        return Answer(Frame());
      case 4:
        return (void)socket_->TryAgain();
      case 5:
        return SendFd();
      default:
        return Write(Frame());
    }
  }
  // One frame, which may be cut short; its payload may have any length.
  std::string Frame() {
    const uint8_t kind = input_.Byte();
    const uint8_t flags = input_.Byte();
    const uint8_t stream = input_.Byte();
    const auto length = input_.Number<uint16_t>();
    std::string frame = {'\0',
                         static_cast<char>(length >> 8),
                         static_cast<char>(length & 0xff),
                         static_cast<char>(kind % 16),
                         static_cast<char>(flags),
                         '\0',
                         '\0',
                         '\0',
                         static_cast<char>(stream)};
    if ((kind & 0x80) != 0) frame[0] = static_cast<char>(stream);
    if ((kind & 0x40) != 0) return frame;  // the payload is what comes next
    return frame + std::string(length, 'p');
  }

  void Write(const std::string& bytes) {
    const ssize_t sent =
        ::send(client_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) came_ += bytes.substr(0, static_cast<size_t>(sent));
  }
  void SendFd() {
    constexpr char kByte = '.';
    if (testing::SendFd(client_.get(), kByte, client_.get()) != 0) return;
    sent_fds_ = true;
    came_ += kByte;
  }
  void TakeAnswers() {
    std::array<char, 4096> bytes{};
    while (::recv(client_.get(), bytes.data(), bytes.size(), 0) > 0) {
    }
  }

  // As gRPC reads: into several buffers. Whether anything came.
  bool Read(size_t most, size_t first) {
    most = std::min<size_t>(most, 64 * 1024);
    std::string bytes(most, '\0');
    first = std::min(first, most);
    std::array<iovec, 2> buffers = {
        {{bytes.data(), first}, {bytes.data() + first, most - first}}};
    msghdr message{};
    message.msg_iov = buffers.data();
    message.msg_iovlen = buffers.size();
    const ssize_t read = most == 0 ? -1 : socket_->Receive(&message, 0);
    Require(read <= static_cast<ssize_t>(GuardedSocket::kMostRead),
            "a read is bounded");
    Require(message.msg_controllen == 0 || read < 0, "no fd is received");
    if (read <= 0) return false;
    Require(socket_->breach().ok(), "nothing is read after a breach");
    bytes.resize(static_cast<size_t>(read));
    passed_.Add(bytes,
                [&](const FrameHeader& frame) { bounds_.OnClient(frame); });
    const std::string& passed = passed_.all();
    Require(came_.compare(0, passed.size(), passed) == 0,
            "what is passed on is the front of what came");
    const std::string preface(kPreface);
    Require(passed.compare(0, preface.size(), preface, 0, passed.size()) == 0,
            "it begins as HTTP/2 does");
    return true;
  }
  void Answer(const std::string& bytes) {
    std::string copy = bytes;
    iovec piece{copy.data(), copy.size()};
    msghdr message{};
    message.msg_iov = &piece;
    message.msg_iovlen = 1;
    const ssize_t sent = socket_->Send(&message, MSG_NOSIGNAL);
    if (sent <= 0) return;
    answered_.Add(bytes.substr(0, static_cast<size_t>(sent)),
                  [&](const FrameHeader& frame) { bounds_.OnServer(frame); });
  }

  Input input_;
  base::UniqueFd client_;
  std::shared_ptr<broker::CallPace> pace_;
  std::unique_ptr<GuardedSocket> socket_;
  bool paced_ = false;
  bool sent_fds_ = false;
  std::string came_;
  WholeStream passed_{sizeof(kPreface) - 1};
  WholeStream answered_{0};
  Bounds bounds_;
};

}  // namespace

void FuzzRelay(Bytes bytes) { RelayRun(bytes).Go(); }

}  // namespace gmb::fuzz
