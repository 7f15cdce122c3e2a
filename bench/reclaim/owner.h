#ifndef GMB_BENCH_RECLAIM_OWNER_H_
#define GMB_BENCH_RECLAIM_OWNER_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "bench/reclaim/child.h"

namespace gmb::bench {

// A process of a tenant whose memory is taken and brought back: it holds
// filled PRESERVE leases and has a gate that parks at once.
class Owner {
 public:
  struct Leases {
    uint64_t bytes_each;
    uint64_t count;
    [[nodiscard]] uint64_t total() const { return bytes_each * count; }
  };
  // Returns when they are filled; a scope is in. `socket_dir` is the tenant's.
  [[nodiscard]] static absl::StatusOr<Owner> Start(
      const std::string& socket_dir, const std::string& uuid,
      const Leases& leases, const std::string& log_path);

  // Ends the scope: its memory may be taken from now on.
  [[nodiscard]] absl::Status Leave();
  // How long Client::Enter took, by the process's own clock.
  [[nodiscard]] absl::StatusOr<absl::Duration> Enter();
  [[nodiscard]] absl::Status Seal();
  // DATA_LOSS unless the beginning and the end of every lease are as written.
  [[nodiscard]] absl::Status Check();

 private:
  explicit Owner(Child child) : child_(std::move(child)) {}

  Child child_;
};

// main() of such a process.
inline constexpr char kOwnerFlag[] = "--owner";
[[nodiscard]] int RunOwner(const std::string& socket_dir,
                           const std::string& uuid,
                           const Owner::Leases& leases);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_OWNER_H_
