#ifndef GMB_BENCH_BROKER_RESTART_WAITER_H_
#define GMB_BENCH_BROKER_RESTART_WAITER_H_

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmb/client.h"

namespace gmb::bench {

// A session that acquires and releases without a pause, whatever becomes of its
// broker, and knows when it was granted something.
class RestartWaiter {
 public:
  using Clock = std::chrono::steady_clock;

  [[nodiscard]] static absl::StatusOr<std::unique_ptr<RestartWaiter>> Start(
      const std::string& socket_dir);
  RestartWaiter(const RestartWaiter&) = delete;
  RestartWaiter& operator=(const RestartWaiter&) = delete;
  ~RestartWaiter();

  // From now on it looks out for the first lease that comes after `dead`.
  void Watch(Clock::time_point dead);
  // When that came; waits for it. DEADLINE_EXCEEDED, or why the session ended.
  [[nodiscard]] absl::StatusOr<Clock::time_point> First();

 private:
  explicit RestartWaiter(std::unique_ptr<Client> client)
      : client_(std::move(client)), thread_([this] { Work(); }) {}
  void Work();
  // How a call ended. Whether to go on.
  bool Note(const absl::Status& status, bool granted);

  const std::unique_ptr<Client> client_;
  std::mutex mu_;
  std::condition_variable changed_;
  bool stop_ = false;
  absl::Status error_;
  std::optional<Clock::time_point> dead_;
  std::optional<Clock::time_point> first_;
  std::thread thread_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_RESTART_WAITER_H_
