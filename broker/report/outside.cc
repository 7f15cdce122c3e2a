// Processes past the broker: for `gmb status` and `gmb session list`.
#include "broker/report/outside.h"

namespace gmb::broker::report {

void AddOutside(const State& state,
                google::protobuf::RepeatedPtrField<v1::OutsideProcess>* list) {
  const auto& clients = state.sessions->processes();
  for (const auto& [id, pool] : *state.pools) {
    for (const DeviceUser& user : pool->device->reading.users) {
      if (clients.contains(user.pid)) continue;
      v1::OutsideProcess* const outside = list->Add();
      outside->set_pid(user.pid);
      outside->set_program(user.program);
      outside->set_device(pool->uuid());
      outside->set_used_bytes(user.used_bytes);
    }
  }
}

}  // namespace gmb::broker::report
