#ifndef GMB_BROKER_KEEPING_KEEPER_WATCH_H_
#define GMB_BROKER_KEEPING_KEEPER_WATCH_H_

#include <chrono>
#include <functional>
#include <thread>

#include "base/mutex.h"
#include "broker/keeping/keeper_client.h"

namespace gmb::broker {

// Notices on a thread of its own that the keeper is lost, and fills the next
// one.
class KeeperWatch {
 public:
  // Called on its thread.
  struct Calls {
    std::function<void()> lost;   // once, each time that it is
    std::function<void()> found;  // it, or another one, has everything again
    std::function<void()> look;   // each time that it looks
  };
  // `client` outlives it.
  KeeperWatch(
      KeeperClient* client, Calls calls,
      std::chrono::milliseconds period = std::chrono::milliseconds(200));
  // Waits for a Refill under way, which its time limits end.
  ~KeeperWatch();
  KeeperWatch(const KeeperWatch&) = delete;
  KeeperWatch& operator=(const KeeperWatch&) = delete;

 private:
  void Run();
  void Look();

  KeeperClient* const client_;
  const Calls calls_;
  const std::chrono::milliseconds period_;
  bool lost_ = false;  // the thread's alone

  base::Mutex mu_;
  base::CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_KEEPER_WATCH_H_
