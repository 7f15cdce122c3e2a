// Many connections that are written to as fast as the broker reads.
#include "tests/attack/http_flood.h"

#include <poll.h>

#include <vector>

#include "absl/time/clock.h"
#include "tests/attack/http_frames.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr int kPollMs = 50;
constexpr absl::Duration kStuck = absl::Seconds(3);
constexpr size_t kEnough = 65'536;

struct Target {
  HttpConnection connection;
  absl::Time last_written;
};

class Flooding {
 public:
  Flooding(const HttpFlood& flood, Attack* attack)
      : flood_(flood),
        attack_(attack),
        sessions_(attack),
        targets_(static_cast<size_t>(attack->options().connections)) {}

  void Turn() {
    if (!sessions_.Ready()) {
      ::poll(nullptr, 0, kPollMs);
      return;
    }
    bool refused = false;
    for (Target& target : targets_) {
      if (!target.connection.is_open() && !refused) refused = !Open(&target);
    }
    std::vector<pollfd> polls;
    for (const Target& target : targets_) {
      const short want = flood_.reads ? POLLIN | POLLOUT : POLLOUT;
      polls.push_back(
          {.fd = target.connection.fd(), .events = want, .revents = 0});
    }
    if (::poll(polls.data(), polls.size(), kPollMs) < 0) return;
    for (size_t i = 0; i < polls.size(); ++i)
      Serve(&targets_[i], polls[i].revents);
  }

 private:
  bool Open(Target* target) {
    HttpConnection& connection = target->connection;
    const bool open =
        connection.Connect(attack_->options().socket_dir + "/gmb.sock");
    attack_->Count(open ? "connections" : "refused");
    if (!open) return false;
    target->last_written = absl::Now();
    connection.Append(Opening());
    if (flood_.begin != nullptr)
      connection.Append(flood_.begin(connection, sessions_.Token()));
    return true;
  }

  void Serve(Target* target, short events) {
    HttpConnection& connection = target->connection;
    if (!connection.is_open()) return;
    if (flood_.reads && (events & POLLIN) != 0) connection.Read();
    if (connection.is_open() && (events & POLLOUT) != 0) {
      while (connection.unwritten() < kEnough)
        connection.Append(flood_.next(connection, sessions_.Token()));
      attack_->Count("bytes", connection.Write());
      target->last_written = absl::Now();
    }
    if (connection.is_open() && (events & (POLLHUP | POLLERR)) != 0)
      connection.Close();
    if (!connection.is_open()) {
      attack_->Count("closed");
    } else if (absl::Now() - target->last_written > kStuck) {
      attack_->Count("given_up");
      connection.Close();
    }
  }

  const HttpFlood& flood_;
  Attack* const attack_;
  Sessions sessions_;
  std::vector<Target> targets_;
};

}  // namespace

void Run(const HttpFlood& flood, Attack& attack) {
  Flooding flooding(flood, &attack);
  while (attack.GoesOn()) flooding.Turn();
}

}  // namespace gmb::attack
