#ifndef GMB_CLIENT_PRELOAD_LEASE_EXPORTS_H_
#define GMB_CLIENT_PRELOAD_LEASE_EXPORTS_H_

#include <map>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/allocations.h"
#include "client/preload/answer.h"
#include "client/preload/broker_link.h"
#include "client/preload/driver.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

struct SharedBlock;

// The leases of allocations that other processes of the tenant may map, by
// handles of legacy CUDA IPC. Thread-safe.
class LeaseExports {
 public:
  // All outlive it.
  LeaseExports(const Driver& driver, BrokerLink* broker,
               Allocations* allocations)
      : driver_(driver), broker_(*broker), allocations_(*allocations) {}
  LeaseExports(const LeaseExports&) = delete;
  LeaseExports& operator=(const LeaseExports&) = delete;

  // For another process of the tenant: the allocation's whole lease, which then
  // stays on the device. As cuIpcGetMemHandle.
  [[nodiscard]] Answer Share(CUdeviceptr address, SharedBlock* shared);
  // Whether it is a lease that Share has given, and that is not released yet.
  [[nodiscard]] bool Has(const internal::ExportedLease& exported);
  // Before the lease is released; nothing is in it any more.
  void Forget(const LeaseRange& lease);

 private:
  const Driver& driver_;
  BrokerLink& broker_;
  Allocations& allocations_;

  // Held across the broker's answer to one who shares, before the gate: who is
  // refused must not undo what another one has got for the same lease.
  base::Mutex sharing_ ABSL_ACQUIRED_BEFORE(mu_);
  base::Mutex mu_;  // held for a moment, and while the books are read
  std::map<const gmb_lease*, internal::ExportedLease> exported_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_LEASE_EXPORTS_H_
