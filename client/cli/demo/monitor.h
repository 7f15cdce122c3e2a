#ifndef GMB_CLIENT_CLI_DEMO_MONITOR_H_
#define GMB_CLIENT_CLI_DEMO_MONITOR_H_

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/admin_client.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The broker at one moment. The demo runs on one pool.
struct Snapshot {
  v1::GetStatusResponse status;
  v1::ListTenantsResponse tenants;

  [[nodiscard]] const v1::PoolStatus& pool() const { return status.pools(0); }
  // Empty when there is no such tenant.
  [[nodiscard]] v1::TenantPool tenant(const std::string& name) const;
};

// Asks the broker for its state again and again on a thread of its own, checks
// that it is sound, and lets others wait for a state to come about.
// Thread-safe.
class Monitor {
 public:
  // `admin` must outlive the monitor. `show` is called with every snapshot, on
  // the monitor's thread.
  Monitor(const AdminClient* admin, std::stop_token stop,
          std::function<void(const Snapshot&)> show);
  ~Monitor();

  // The first snapshot taken after the call for which `holds` is true.
  // `what` is said when it does not come about (DEADLINE_EXCEEDED).
  [[nodiscard]] absl::StatusOr<Snapshot> Await(
      const std::string& what,
      const std::function<bool(const Snapshot&)>& holds,
      absl::Duration patience = absl::Seconds(20));

  struct Findings {
    uint64_t snapshots = 0;
    uint64_t unsound = 0;       // of them
    std::string first_unsound;  // the fault of the first

    void Add(const Findings& later);
  };
  [[nodiscard]] Findings findings() const;

 private:
  void Run();
  absl::StatusOr<Snapshot> Take() const;

  const AdminClient* const admin_;
  const std::stop_token stop_;
  const std::function<void(const Snapshot&)> show_;
  mutable std::mutex mu_;
  std::condition_variable_any changed_;
  Snapshot latest_;      // guarded by mu_, like what follows
  absl::Status failed_;  // why there are no more snapshots
  Findings findings_;
  uint64_t begun_ = 0;  // snapshots asked for
  uint64_t taken_ = 0;  // the one in latest_, counted from 1
  bool quit_ = false;
  std::thread thread_;
};

// Empty when the parts of every pool add up to it and no tenant is above its
// limit unnoticed; otherwise what is wrong.
[[nodiscard]] std::string WhatIsUnsound(const Snapshot& snapshot);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_MONITOR_H_
