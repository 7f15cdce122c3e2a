#ifndef GMB_BROKER_REPORT_OUTSIDE_H_
#define GMB_BROKER_REPORT_OUTSIDE_H_

#include "broker/machine/state.h"
#include "gmb/v1/admin.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace gmb::broker::report {

// Adds the processes that use a device and have no session, as the driver named
// them at the last audit. Does little: under the core's lock.
void AddOutside(const State& state,
                google::protobuf::RepeatedPtrField<v1::OutsideProcess>* list);

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_OUTSIDE_H_
