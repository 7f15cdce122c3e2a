#ifndef GMB_BENCH_ATTACK_OPERATOR_H_
#define GMB_BENCH_ATTACK_OPERATOR_H_

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/admin_client.h"

namespace gmb::bench {

// The work of an operator with the attacker's tenant meanwhile. Some attacks
// need it: without it the broker makes no socket beside their links, and copies
// none of their slabs.
enum class Work { kNone, kMakesAnew, kReclaims };

// Does it again and again on a thread of its own.
class Operator {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Operator>> Start(
      const std::string& socket_dir, Work work);
  ~Operator();

  // The tenant is there again afterwards; the error says why it is not.
  [[nodiscard]] absl::Status Stop();

 private:
  Operator(cli::AdminClient admin, Work work);
  void GoOn();
  [[nodiscard]] absl::Status MakeTenant() const;
  void DeleteTenant() const;
  void Reclaim() const;

  const cli::AdminClient admin_;
  const Work work_;
  std::atomic<bool> stopped_ = false;
  std::thread thread_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_ATTACK_OPERATOR_H_
