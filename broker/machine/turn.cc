// What one turn of the machine leaves to be done.
#include "broker/machine/turn.h"

#include "broker/machine/wire_form.h"

namespace gmb::broker {

void Turn::Publish(v1::Event event) {
  *event.mutable_at() = ToProto(wall_);
  Add(broker::Publish{std::move(event)});
}

}  // namespace gmb::broker
