// Hands what comes over the sockets to the parts that it is for. Runs on the
// thread that reads them, and on gRPC's.
#include "client/session/inbox.h"

#include <chrono>
#include <utility>

#include "base/status_macros.h"
#include "client/no_throw.h"
#include "client/wire.h"

namespace gmb::internal {

Inbox::Inbox(Calls* calls, Mover* mover, GateSwitch* gate, TrimHook* trim_hook,
             Notifier* notifier)
    : calls_(*calls),
      mover_(*mover),
      gate_(*gate),
      trim_hook_(*trim_hook),
      notifier_(*notifier) {}

void Inbox::OnMessage(v1::BrokerMessage message, uint64_t reader) {
  const absl::Status status = NoThrow([&] {
    return message.request_id() == 0 ? TakeNotice(message)
                                     : TakeAnswer(std::move(message), reader);
  });
  if (!status.ok()) calls_.End(status);
}

void Inbox::OnStreamRefused(const absl::Status& why) { calls_.End(why); }

absl::Status Inbox::OnSlabs(const v1::Slabs& slabs,
                            std::vector<base::UniqueFd> fds, uint64_t reader) {
  GMB_RETURN_IF_ERROR(slabs.request_id() == 0
                          ? mover_.OnSlabs(slabs, std::move(fds))
                          : calls_.OnSlabs(slabs, std::move(fds), reader));
  calls_.Flush();  // slabs that did not match their grant are released
  return absl::OkStatus();
}

absl::Status Inbox::TakeAnswer(v1::BrokerMessage message, uint64_t reader) {
  if (message.has_released()) mover_.OnReleased(message.released().lease_id());
  GMB_RETURN_IF_ERROR(calls_.OnAnswer(std::move(message), reader));
  calls_.Flush();  // a grant that nobody waits for is released
  return absl::OkStatus();
}

absl::Status Inbox::TakeNotice(const v1::BrokerMessage& message) {
  switch (message.kind_case()) {
    case v1::BrokerMessage::kBudgetChanged:
      notifier_.BudgetChanged(QuotaFromWire(message.budget_changed().quota()));
      break;
    case v1::BrokerMessage::kDraining:
      notifier_.Draining(DurationFromWire(message.draining().remaining()));
      break;
    case v1::BrokerMessage::kEvict:
      return mover_.OnEvict(message.evict());
    case v1::BrokerMessage::kMap:
      return mover_.OnMap(message.map());
    case v1::BrokerMessage::kPausing:
      gate_.PauseNoticed();
      break;
    case v1::BrokerMessage::kTrim:
      trim_hook_.OnTrim(message.trim(), std::chrono::steady_clock::now());
      break;
    default:
      break;  // a newer broker may have more to say
  }
  return absl::OkStatus();
}

}  // namespace gmb::internal
