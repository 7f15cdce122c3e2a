// The work that one turn of the machine leaves to be done.
#include "broker/machine/turn.h"

#include "broker/machine/wire_form.h"

namespace gmb::broker {

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
