#ifndef GMB_BROKER_CORE_AFTERWARDS_H_
#define GMB_BROKER_CORE_AFTERWARDS_H_

#include <fcntl.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "broker/core/core.h"
#include "device/copier.h"
#include "ipc/pidfd.h"
#include "ipc/unique_fd.h"

namespace gmb::broker {

// What one turn of the core leaves to be done once its lock is given up. The
// order of things is already fixed, in the queues: this only sets them going.
struct Core::Afterwards {
  std::vector<std::shared_ptr<Outbox>> pump;
  std::vector<DeviceWorker*> wake;
  std::vector<std::pair<std::shared_ptr<Outbox>, absl::Status>> close;
  std::vector<uint64_t> overflowed;  // sessions that do not read
  bool wake_ticker = false;
  struct Copy {
    device::Copier* copier;
    device::CopyJob job;  // its handle is duplicated when it is pushed
    SharedHandle handle;
  };
  std::vector<Copy> copies;
  std::vector<std::pair<device::Copier*, uint64_t>> cancel;  // groups
  std::vector<std::shared_ptr<const ipc::UniqueFd>> kill;    // processes
  std::vector<std::unique_ptr<Session>> ended;
  std::vector<std::function<void()>> answers;  // of operators' calls

  void Pump(const Session& session) {
    if (pump.empty() || pump.back() != session.outbox)
      pump.push_back(session.outbox);
    if (session.outbox->overflowed()) overflowed.push_back(session.id);
  }

  void Run(Core* core) {
    for (DeviceWorker* worker : wake) worker->Wake();
    StartCopies();
    for (const auto& outbox : pump) outbox->Pump();
    for (const auto& [outbox, status] : close) outbox->Close(status);
    if (wake_ticker && core->wake_ticker_) core->wake_ticker_();
    core->deps_.events->Wake();  // last: log and watchers can wait
    for (const uint64_t session : overflowed) {
      core->CloseSession(session, "does not read what it is sent");
    }
    for (const auto& answer : answers) answer();
    for (const auto& process : kill) {
      // A process that is gone already ends its session by that.
      ipc::Kill(*process).IgnoreError();
    }
  }

  void StartCopies() {
    for (Copy& copy : copies) {
      absl::StatusOr<device::ShareableHandle> slab = Duplicate(copy.handle);
      // The slab may be destroyed before the rest of this is done.
      copy.handle.reset();
      if (!slab.ok()) {
        copy.job.done(slab.status());
        continue;
      }
      copy.job.slab = *std::move(slab);
      copy.copier->Push(std::move(copy.job));
      copy.copier->Wake();
    }
    for (const auto& [copier, group] : cancel) {
      if (copier != nullptr) copier->Cancel(group);
    }
  }

  static absl::StatusOr<device::ShareableHandle> Duplicate(
      const SharedHandle& handle) {
    const auto* fd =
        handle == nullptr ? nullptr : std::get_if<ipc::UniqueFd>(handle.get());
    if (fd == nullptr) return absl::InternalError("the slab has no handle");
    ipc::UniqueFd copy(fcntl(fd->get(), F_DUPFD_CLOEXEC, 0));
    if (!copy.valid()) return absl::ErrnoToStatus(errno, "dup of a slab");
    return copy;
  }
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_AFTERWARDS_H_
