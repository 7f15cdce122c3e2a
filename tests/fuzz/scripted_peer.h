#ifndef GMB_TESTS_FUZZ_SCRIPTED_PEER_H_
#define GMB_TESTS_FUZZ_SCRIPTED_PEER_H_

#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "ipc/seqpacket.h"
#include "tests/broker/temp_directory.h"
#include "tests/fuzz/input.h"

namespace gmb::fuzz {

// Listens on a SEQPACKET socket, and says to the one that connects what it was
// told, without listening to it; then it hangs up.
class ScriptedPeer {
 public:
  struct Packet {
    std::string bytes;
    size_t fds = 0;
    bool same_fd = false;  // all are one open file
    int extra = -1;        // one more, unless it is -1; stays the caller's
  };

  ScriptedPeer()
      : listener_(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy_n(path().c_str(), path().size() + 1, address.sun_path);
    Require(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address),
                   sizeof(address)) == 0 &&
                ::listen(listener_.get(), 4) == 0,
            "there is a socket to listen on");
  }

  [[nodiscard]] std::string path() const { return directory_ / "peer"; }

  // Runs `connects`, which connects once, while the packets are said.
  template <typename Connects>
  void Play(std::vector<Packet> packets, Connects connects) {
    std::thread speaker([this, &packets] { Speak(packets); });
    connects();
    speaker.join();
  }

  // Takes no time, and ends before this does.
  static void Say(ipc::SeqpacketSocket* socket,
                  const std::vector<Packet>& packets) {
    std::vector<base::UniqueFd> files;
    for (const Packet& packet : packets) {
      std::vector<int> fds;
      for (size_t i = 0; i < packet.fds; ++i) {
        if (!packet.same_fd || files.empty())
          files.emplace_back(::memfd_create("slab", MFD_CLOEXEC));
        fds.push_back(files.back().get());
      }
      if (packet.extra >= 0) fds.push_back(packet.extra);
      if (!socket->TrySend(packet.bytes, fds).ok()) return;
    }
  }

 private:
  void Speak(const std::vector<Packet>& packets) {
    ipc::SeqpacketSocket socket(base::UniqueFd(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
    Say(&socket, packets);
    ::shutdown(socket.fd(), SHUT_WR);
    (void)socket.AwaitHangUp(absl::Seconds(60));
  }

  const broker::TempDirectory directory_;
  const base::UniqueFd listener_;
};

// The lowest fd that is free: the same before and after something that leaks
// none.
inline int LowestFreeFd() {
  const base::UniqueFd fd(::dup(0));
  return fd.get();
}

}  // namespace gmb::fuzz

#endif  // GMB_TESTS_FUZZ_SCRIPTED_PEER_H_
