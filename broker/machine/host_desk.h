#ifndef GMB_BROKER_MACHINE_HOST_DESK_H_
#define GMB_BROKER_MACHINE_HOST_DESK_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/lease.h"
#include "broker/machine/quota_desk.h"
#include "broker/machine/records.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "device/copy_job.h"
#include "quota/units.h"

namespace gmb::broker {

// Room in the host pool, which makes a lease soft; and copies of contents to it
// and back, those ahead of need too.
class HostDesk {
 public:
  struct Below {
    IndexKeeper& index;
    QuotaDesk& quota;
  };
  HostDesk(State& state, const Below& below)
      : state_(state), index_(below.index), quota_(below.quota) {}

  // --- Room.
  void SetLimit(quota::TenantId tenant, uint64_t bytes);
  void ForgetTenant(quota::TenantId tenant);
  // False: there is none. A lease whose contents need none has it always.
  [[nodiscard]] bool ReserveRoom(const Lease& lease);
  [[nodiscard]] bool ReserveRoomFor(quota::TenantId tenant,
                                    quota::LeaseId lease,
                                    const PendingAcquire& request,
                                    uint64_t bytes);
  // The room that it had with another broker. False: it cannot have it here.
  [[nodiscard]] bool Adopt(quota::TenantId tenant, const LeaseRecord& record);
  // Its bytes can be taken from now on, if all who have it allow that.
  void Soften(const Lease& lease, Turn& turn);
  // Of a lease that is hard now. One that is being copied keeps it until then,
  // and a torn one until it is filled.
  void GiveUpRoom(Lease* lease);
  // Of a lease that has ended. Room is for leases of all pools.
  void Release(quota::LeaseId lease);

  // --- The copies of a move, and the first error of it.
  void BeginMove(Lease* lease);
  void CopyOut(Lease* lease, Turn& turn);
  void CopyIn(Lease* lease, Turn& turn);
  // One more is done. Whether that was the last one.
  [[nodiscard]] bool OnCopied(Lease* lease, const absl::Status& status,
                              Turn& turn);
  // The move has failed: its copies are no longer needed.
  void Fail(Lease* lease, const absl::Status& why, Turn& turn);
  // The same, but what is being copied goes on.
  void Spoil(Lease* lease, const absl::Status& why);
  static void CancelCopies(const Lease& lease, Turn& turn);
  absl::Status TakeError(Lease* lease);
  void MarkTrue(const Lease& lease);
  // The device has what the host pool has, as of now.
  void MarkFilled(Lease* lease);
  // For a while: a step has failed.
  void LeaveAlone(Lease* lease, quota::Instant now);
  // A copy from before the last writes does not become true by sealing.
  void BeforeSeal(const Session& session, Lease* lease);

  // --- Ahead of need.
  [[nodiscard]] uint64_t StartBacking(Lease* lease, uint64_t bytes,
                                      quota::Instant now, Turn& turn);
  void OnBacked(Lease* lease, Turn& turn);

 private:
  // Between these slabs of the lease and its place in the host pool.
  void CopyContents(Lease* lease, device::CopyDirection direction, size_t first,
                    size_t end, Turn& turn);

  State& state_;
  IndexKeeper& index_;
  QuotaDesk& quota_;
};

// Whether such contents of the session can be taken by force.
[[nodiscard]] bool CanBeTaken(const State& state, const Session& session,
                              const Pool& pool, v1::Contents contents);
// Whether the tenant owes no answer: what it is given soft must be there to be
// taken.
[[nodiscard]] bool HasSoftCredit(const State& state, quota::TenantId tenant);
// Whether the lease has to be copied before it can leave the device.
[[nodiscard]] bool NeedsCopy(const State& state, const Lease& lease);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_HOST_DESK_H_
