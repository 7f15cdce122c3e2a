#ifndef GMB_CLIENT_PRELOAD_CONTEXTS_H_
#define GMB_CLIENT_PRELOAD_CONTEXTS_H_

#include <cstdint>
#include <map>
#include <set>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "client/preload/captures.h"
#include "client/preload/driver.h"
#include "client/preload/home_context.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// The process's contexts, and whether the GPU is done with what was submitted in
// all of them. Green contexts show in the primary one that they are of.
// Thread-safe; no lock is held while the driver is waited for.
class Contexts {
 public:
  // Both outlive it.
  Contexts(const Driver& driver, Captures* captures)
      : driver_(driver), captures_(*captures) {}
  Contexts(const Contexts&) = delete;
  Contexts& operator=(const Contexts&) = delete;

  // It is current.
  void Created(CUcontext context);
  // Once more; it ends with the detach that is the last.
  void Attached(CUcontext context);
  // Before a detach; false: others are to come. One that fails is Attached again.
  [[nodiscard]] bool DetachesLast(CUcontext context);
  // Before the call that may end it. See Captures::AwaitTurn.
  void Ending(CUcontext context);
  // The same of the device's primary one, which the driver does not name any
  // more.
  void EndingPrimary(CUdevice device);

  // Those that the program has made.
  [[nodiscard]] std::set<CUcontext> CreatedOn(CUdevice device);

  // Of what is allocated now, in the current context, which is of the device.
  [[nodiscard]] HomeContext HomeOn(CUdevice device);

  // The driver's; null for one that is not known.
  [[nodiscard]] CUcontext HandleOf(const HomeContext& home);

  // Waits until what was submitted and may use the device's memory of a context
  // is done; in the device's contexts all, and in the current one of whichever
  // device, where it is of none. The caller has a SynchronizingTurn, so that
  // none ends meanwhile. One that is gone, or another one than the current that
  // is lost, has nothing to wait for.
  [[nodiscard]] CUresult Synchronize(CUdevice device,
                                     const HomeContext& home = {});

  // Whether the driver can be asked at all.
  [[nodiscard]] bool CanRecord() const {
    return driver_.cuCtxRecordEvent != nullptr;
  }
  // As IdlerDevices: an event after all that was submitted in each context.
  // Recording destroys captures, so that the two take turns.
  [[nodiscard]] bool Record();
  enum class Work : uint8_t { kBusy, kDone, kLost };
  [[nodiscard]] Work Poll();

 private:
  [[nodiscard]] bool AddPrimaries() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  [[nodiscard]] bool RecordIn(CUcontext context, CUevent* event) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  [[nodiscard]] CUresult SynchronizeAll(CUdevice device, CUcontext current);
  [[nodiscard]] CUresult SynchronizeIn(CUcontext context) const;
  // Null where there is none.
  [[nodiscard]] CUcontext AskForPrimary(CUdevice device);
  // False for null.
  [[nodiscard]] bool IsPrimary(CUcontext context, CUdevice device);

  const Driver& driver_;
  Captures& captures_;
  // Held across calls that do not wait: an event may not be asked for once its
  // context has ended.
  base::Mutex mu_;
  // Each with its event, which is null at first.
  std::map<CUcontext, CUevent> events_ ABSL_GUARDED_BY(mu_);
  bool lost_ ABSL_GUARDED_BY(mu_) = false;  // an event, since the last Record
  struct Made {
    CUdevice device = 0;
    int uses = 1;  // that are to be detached before it ends
  };
  // Those that the program has made.
  std::map<CUcontext, Made> created_ ABSL_GUARDED_BY(mu_);
  // Which one each device's primary one was when the driver was asked last.
  std::map<CUdevice, CUcontext> primaries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_CONTEXTS_H_
