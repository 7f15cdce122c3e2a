#ifndef GMB_TESTS_ATTACK_EVENT_LISTENER_H_
#define GMB_TESTS_ATTACK_EVENT_LISTENER_H_

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/cli/admin_client.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::attack {

// The broker's events from now on, of sessions alone. Ends before its broker.
class EventListener {
 public:
  explicit EventListener(const std::string& socket_dir);
  ~EventListener();
  EventListener(const EventListener&) = delete;
  EventListener& operator=(const EventListener&) = delete;

  // Why sessions of the tenant have ended, in order.
  [[nodiscard]] std::vector<std::string> Ended(const std::string& tenant) const;
  // Sessions of others than these tenants that have ended otherwise than by
  // themselves, for a person to read.
  [[nodiscard]] std::vector<std::string> EndedByOthers(
      const std::string& attacker) const;

 private:
  void Listen();

  cli::AdminClient admin_;
  std::unique_ptr<cli::EventReader> reader_;
  mutable base::Mutex mu_;
  std::vector<v1::Event> ended_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_EVENT_LISTENER_H_
