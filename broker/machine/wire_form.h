#ifndef GMB_BROKER_MACHINE_WIRE_FORM_H_
#define GMB_BROKER_MACHINE_WIRE_FORM_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "broker/machine/lease.h"
#include "device/handle.h"
#include "gmb/v1/session.pb.h"
#include "gmb/v1/types.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "quota/amount.h"
#include "quota/reason.h"
#include "quota/tenant_quota.h"
#include "quota/units.h"

// The wire's forms of the core's and the quota engine's values.
namespace gmb::broker {

struct State;

[[nodiscard]] v1::DeviceInfo ToProto(const device::DeviceInfo& info);
[[nodiscard]] v1::Amount ToProto(const quota::Amount& amount);
// An amount that says nothing is 0 bytes.
[[nodiscard]] quota::Amount FromProto(const v1::Amount& amount);
[[nodiscard]] v1::Quota ToProto(const quota::TenantQuota& quota);
[[nodiscard]] v1::ErrorReason ToProto(quota::Reason reason);
// A client's wait, made sane: never negative, at most an hour.
[[nodiscard]] quota::Nanoseconds SaneWait(
    const google::protobuf::Duration& wait);
[[nodiscard]] google::protobuf::Timestamp ToProto(absl::Time time);
// Negative durations are sent as 0.
[[nodiscard]] google::protobuf::Duration ToProto(quota::Nanoseconds duration);

// The error that a client sends, whose words are copied into the answers of
// others that wait for the same, and stay with the lease: few of them are kept,
// and nothing else that it has sent.
inline constexpr size_t kMostErrorBytes = 200;
[[nodiscard]] absl::Status FromClient(const v1::Error& error);

// The answer to a session's request, empty yet.
[[nodiscard]] v1::BrokerMessage AnswerTo(uint64_t client_id);
// To one who has the lease: an Evict while it is being evicted, else a Map.
[[nodiscard]] v1::BrokerMessage MoveMessage(const Lease& lease,
                                            const Mapping& mapping);

void FillGrant(const State& state, const Lease& lease, v1::Grant* grant);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_WIRE_FORM_H_
