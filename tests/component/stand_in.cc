#include "tests/component/stand_in.h"

#include <sys/socket.h>

#include <cerrno>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "ipc/socket_path.h"
#include "tests/component/await.h"

namespace gmb::component {
namespace {

base::UniqueFd StreamSocket() {
  return base::UniqueFd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

}  // namespace

StandIn::StandIn(std::string path, int backlog)
    : path_(std::move(path)),
      aside_(path_ + ".aside"),
      listener_(StreamSocket()) {
  std::filesystem::rename(path_, aside_);
  const sockaddr_un address = ipc::SocketAddress(path_).value();
  if (::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&address),
             sizeof(address)) != 0 ||
      ::listen(listener_.get(), backlog) != 0) {
    throw std::runtime_error("cannot listen at " + path_);
  }
}

StandIn::~StandIn() {
  std::error_code ignored;
  std::filesystem::rename(aside_, path_, ignored);
}

void StandIn::Crowd() {
  const sockaddr_un address = ipc::SocketAddress(path_).value();
  while (true) {
    base::UniqueFd fd = StreamSocket();
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address),
                  sizeof(address)) != 0) {
      if (errno == EAGAIN) return;
      throw std::runtime_error("cannot connect to " + path_);
    }
    crowd_.push_back(std::move(fd));
  }
}

bool StandIn::TurnOneAway() {
  for (; !crowd_.empty(); crowd_.pop_back()) (void)Accept();
  return Await([this] { return Accept().valid(); });
}

size_t StandIn::TakeAll() {
  for (base::UniqueFd fd = Accept(); fd.valid(); fd = Accept())
    taken_.push_back(std::move(fd));
  return taken_.size();
}

base::UniqueFd StandIn::Accept() const {
  return base::UniqueFd(
      ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
}

}  // namespace gmb::component
