#ifndef GMB_CLIENT_CLI_DEMO_CAST_H_
#define GMB_CLIENT_CLI_DEMO_CAST_H_

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/demo/actor_process.h"
#include "client/cli/demo/broker_process.h"

namespace gmb::cli {

// The actors on the stage, a process for each tenant, and what they have read
// back so far. Says nothing on the screen. Used by one thread.
class Cast {
 public:
  struct Parts {
    const BrokerProcess* broker;  // outlives it
    std::string dir;              // for logs
    int interrupt_fd = -1;
  };
  explicit Cast(Parts parts) : parts_(std::move(parts)) {}

  // Starts (again) the process of a tenant.
  absl::Status Enter(const std::string& tenant);
  // Ends it at once, if it has not ended.
  void Leave(const std::string& tenant) { actors_.erase(tenant); }
  // Of one who is on the stage.
  [[nodiscard]] ActorProcess& Of(const std::string& tenant) {
    return actors_.at(tenant);
  }
  [[nodiscard]] std::vector<std::string> Tenants() const;

  // Every process checks every byte it holds; how many they were.
  absl::StatusOr<uint64_t> Verify();
  // By all calls of Verify: readings of all that a process holds, and bytes.
  [[nodiscard]] uint64_t verifications() const { return verifications_; }
  [[nodiscard]] uint64_t verified_bytes() const { return verified_bytes_; }

 private:
  const Parts parts_;
  std::map<std::string, ActorProcess> actors_;
  uint64_t verifications_ = 0;
  uint64_t verified_bytes_ = 0;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_CAST_H_
