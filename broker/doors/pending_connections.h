#ifndef GMB_BROKER_DOORS_PENDING_CONNECTIONS_H_
#define GMB_BROKER_DOORS_PENDING_CONNECTIONS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace gmb::broker {

// The connections that have not proved yet whose they are: how long each may
// still take, and who makes room when there are too many. A peer that greets at
// once is here for a millisecond; a flood is here until its time is up. Room is
// made by the
// listener with the most of them, in it by the process with the most, and
// there by the oldest: a flood drowns itself first.
//
// A value without sockets or threads.
class PendingConnections {
 public:
  using Time = std::chrono::steady_clock::time_point;

  explicit PendingConnections(size_t limit) : limit_(limit) {}

  // Returns the connection that has to go for it, if any. `deadline` must not
  // be earlier than that of the one added before.
  [[nodiscard]] std::optional<uint64_t> Add(uint64_t connection,
                                            uint64_t listener, uint64_t process,
                                            Time deadline);
  void Remove(uint64_t connection);
  // Takes those whose deadline has come.
  [[nodiscard]] std::vector<uint64_t> TakeExpired(Time now);
  [[nodiscard]] std::optional<Time> NextDeadline() const;
  [[nodiscard]] size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    uint64_t connection;
    uint64_t listener;
    uint64_t process;
    Time deadline;
  };

  [[nodiscard]] uint64_t PickVictim() const;

  const size_t limit_;
  std::deque<Entry> entries_;  // oldest first
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DOORS_PENDING_CONNECTIONS_H_
