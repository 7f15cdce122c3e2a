#ifndef GMB_BROKER_SERVER_CONNECTION_TABLE_H_
#define GMB_BROKER_SERVER_CONNECTION_TABLE_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "broker/server/handle_connection.h"
#include "ipc/epoll_set.h"

namespace gmb::broker {

// The peers of the handle server, by the ids by which epoll tells of them. The
// server's thread's.
class ConnectionTable {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Connections = std::map<uint64_t, std::unique_ptr<HandleConnection>>;

  // `epoll` must outlive it.
  explicit ConnectionTable(const ipc::EpollSet* epoll) : epoll_(epoll) {}

  // Not watched yet.
  uint64_t Add(std::unique_ptr<HandleConnection> connection);
  // Null: there is no such connection any more.
  [[nodiscard]] HandleConnection* Find(uint64_t id) const;
  [[nodiscard]] const Connections& all() const { return connections_; }
  // No more is heard of it. Null: there is no such connection.
  [[nodiscard]] std::unique_ptr<HandleConnection> Take(uint64_t id);

  // From here on epoll tells of what it sends, of its hang-up and of its death.
  [[nodiscard]] absl::Status Watch(uint64_t id) const;
  // Whether epoll tells of room in its socket, too.
  [[nodiscard]] absl::Status WatchRoom(uint64_t id, bool room) const;

  // It has hung up, and nearly always dies: only its death is told from here on.
  void AwaitDeath(uint64_t id, Time until);
  [[nodiscard]] bool IsDying(uint64_t id) const { return dying_.contains(id); }
  // Those that live on although their time is over; they stay until taken.
  [[nodiscard]] std::vector<uint64_t> Outlived(Time now) const;
  [[nodiscard]] std::optional<Time> NextDeath() const;

 private:
  const ipc::EpollSet* const epoll_;
  Connections connections_;
  uint64_t next_id_ = 1;
  std::map<uint64_t, Time> dying_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_CONNECTION_TABLE_H_
