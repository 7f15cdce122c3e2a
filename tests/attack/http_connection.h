#ifndef GMB_TESTS_ATTACK_HTTP_CONNECTION_H_
#define GMB_TESTS_ATTACK_HTTP_CONNECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/unique_fd.h"

namespace gmb::attack {

// A connection of a Unix stream socket that never waits. Bytes to be written
// stay in it until the peer takes them.
class HttpConnection {
 public:
  // False: the backlog is full, nobody listens, or no fd is left.
  [[nodiscard]] bool Connect(const std::string& path);
  // Goes on with one that another process made.
  void Adopt(base::UniqueFd fd, uint32_t next_stream);
  void Close();

  [[nodiscard]] bool is_open() const { return fd_.valid(); }
  [[nodiscard]] int fd() const { return fd_.get(); }
  [[nodiscard]] size_t unwritten() const { return unwritten_.size() - at_; }

  void Append(const std::string& bytes) { unwritten_ += bytes; }
  // How many bytes the peer has taken now. Closed when it has hung up.
  size_t Write();
  // Reads what is there; the bytes go to `kept`, where there is one. Closed
  // when the peer has hung up.
  void Read(std::string* kept = nullptr);

  // The stream that the next call may have.
  [[nodiscard]] uint32_t NextStream() {
    const uint32_t stream = next_stream_;
    next_stream_ += 2;
    return stream;
  }

 private:
  base::UniqueFd fd_;
  std::string unwritten_;
  size_t at_ = 0;  // what of it is written already
  uint32_t next_stream_ = 1;
};

// A non-blocking socket of that type (SOCK_STREAM, SOCK_SEQPACKET) that is
// connected to `path`; empty when that fails, and then errno says why.
[[nodiscard]] base::UniqueFd ConnectNow(const std::string& path, int type);

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_HTTP_CONNECTION_H_
