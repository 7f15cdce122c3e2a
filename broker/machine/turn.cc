// The work that one turn of the machine leaves to be done.
#include "broker/machine/turn.h"

#include <utility>

#include "broker/machine/wire_form.h"

namespace gmb::broker {

Turn::Turn(quota::Instant now, absl::Time wall, bool held_up)
    : now_(now), wall_(wall), held_up_(held_up) {}

Turn::~Turn() = default;

void Turn::Add(Effect effect) { effects_.push_back(std::move(effect)); }

void Turn::Bury(Placed<Session> session) {
  buried_.push_back(std::move(session));
}

void Turn::Queue(Work work) { fresh_.push_back(std::move(work)); }

std::vector<Effect> Turn::TakeEffects() { return std::exchange(effects_, {}); }

RecordChanges Turn::TakeRecords() { return std::exchange(records_, {}); }

std::vector<Placed<Session>> Turn::TakeBuried() {
  return std::exchange(buried_, {});
}

void Turn::Publish(v1::Event event) {
  *event.mutable_at() = ToProto(wall_);
  Add(broker::Publish{std::move(event)});
}

const Work* Turn::NextWork() {
  work_.splice(work_.begin(), fresh_);
  doing_.clear();
  if (work_.empty() || exhausted()) return nullptr;
  ++steps_;
  doing_.splice(doing_.begin(), work_, work_.begin());
  return &doing_.front();
}

}  // namespace gmb::broker
