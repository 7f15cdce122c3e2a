#ifndef GMB_BENCH_ATTACK_OTHERS_H_
#define GMB_BENCH_ATTACK_OTHERS_H_

#include <sys/types.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "gmb/client.h"

namespace gmb::bench {

inline constexpr char kHonest[] = "honest";  // its session is from before
inline constexpr char kOther[] = "other";    // its clients come anew

// How the broker serves those who mean well.
struct Seen {
  std::vector<double> acquire_ms;
  double greeting_ms = 0;  // the longest
  double status_ms = 0;    // the longest, with its connection
  std::vector<std::string> failures;
};

// Asks as much as a node with many programs at one moment: for each of two
// tenants 60 sessions at once greet and lease, and ten operators ask. gRPC
// makes the threads for such a moment once, and keeps them: again until it has
// all that it ever makes.
[[nodiscard]] absl::Status ServeCrowds(const std::string& socket_dir,
                                       pid_t broker);

// An honest session that leases without pause, and beside it clients and
// operators that come anew, on threads of its own.
class Others {
 public:
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Others>> Start(
      const std::string& socket_dir);
  ~Others();

  // Waits for what is being asked: an answer that is late counts as it is.
  [[nodiscard]] Seen Stop();

 private:
  Others(std::string socket_dir, std::unique_ptr<Client> honest);
  void Lease();
  void Ask();

  const std::string socket_dir_;
  const std::unique_ptr<Client> honest_;
  std::atomic<bool> stopped_ = false;
  Seen leases_;   // of the first thread
  Seen answers_;  // of the second one
  std::thread leasing_;
  std::thread asking_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_ATTACK_OTHERS_H_
