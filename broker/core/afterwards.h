#ifndef GMB_BROKER_CORE_AFTERWARDS_H_
#define GMB_BROKER_CORE_AFTERWARDS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
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
  std::vector<std::pair<device::Copier*, device::CopyJob>> copies;
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
    for (auto& [copier, job] : copies) {
      copier->Push(std::move(job));
      copier->Wake();
    }
    for (const auto& [copier, group] : cancel) {
      if (copier != nullptr) copier->Cancel(group);
    }
  }
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_AFTERWARDS_H_
