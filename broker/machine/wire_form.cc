// Puts leases, sessions and quotas into the wire's messages, and reads amounts
// and waits out of them.
#include "broker/machine/wire_form.h"

#include <algorithm>
#include <string>

#include "absl/strings/string_view.h"
#include "base/utf8.h"
#include "broker/machine/state.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

v1::DeviceKind KindOf(device::DeviceKind kind) {
  switch (kind) {
    case device::DeviceKind::kVmm:
      return v1::DEVICE_KIND_VMM;
    case device::DeviceKind::kIpc:
      return v1::DEVICE_KIND_IPC;
    case device::DeviceKind::kHost:
      return v1::DEVICE_KIND_HOST;
  }
  return v1::DEVICE_KIND_UNSPECIFIED;
}

template <typename T>
T SecondsAndNanos(int64_t ns) {
  T proto;
  proto.set_seconds(ns / 1'000'000'000);
  proto.set_nanos(static_cast<int32_t>(ns % 1'000'000'000));
  return proto;
}

}  // namespace

v1::DeviceInfo ToProto(const device::DeviceInfo& info) {
  v1::DeviceInfo proto;
  proto.set_uuid(info.uuid);
  proto.set_kind(KindOf(info.kind));
  proto.set_name(info.name);
  proto.set_granularity_bytes(info.granularity_bytes);
  proto.set_total_bytes(info.total_bytes);
  return proto;
}

v1::Amount ToProto(const quota::Amount& amount) {
  v1::Amount proto;
  if (amount.is_fraction()) {
    proto.set_fraction(amount.fraction());
  } else {
    proto.set_bytes(amount.bytes());
  }
  return proto;
}

quota::Amount FromProto(const v1::Amount& amount) {
  return amount.has_fraction() ? quota::Amount::Fraction(amount.fraction())
                               : quota::Amount::Bytes(amount.bytes());
}

v1::Quota ToProto(const quota::TenantQuota& quota) {
  v1::Quota proto;
  *proto.mutable_guarantee() = ToProto(quota.guarantee);
  *proto.mutable_limit() = ToProto(quota.limit);
  proto.set_weight(quota.weight);
  return proto;
}

v1::ErrorReason ToProto(quota::Reason reason) {
  switch (reason) {
    case quota::Reason::kBadRequest:
      return v1::BAD_REQUEST;
    case quota::Reason::kNoSuchTenant:
      return v1::NO_SUCH_TENANT;
    case quota::Reason::kNoSuchPool:
      return v1::NO_SUCH_DEVICE;
    case quota::Reason::kBadState:
      return v1::BAD_STATE;
    case quota::Reason::kTenantLimit:
      return v1::TENANT_LIMIT;
    case quota::Reason::kTooManyHandles:
      return v1::TOO_MANY_HANDLES;
    case quota::Reason::kPoolExhausted:
      return v1::POOL_EXHAUSTED;
    case quota::Reason::kOvercommitted:
      return v1::OVERCOMMITTED;
    case quota::Reason::kDraining:
      return v1::DRAINING;
    case quota::Reason::kCancelled:
      return v1::CANCELLED_BY_CLIENT;
  }
  return v1::ERROR_REASON_UNSPECIFIED;
}

quota::Nanoseconds SaneWait(const google::protobuf::Duration& wait) {
  const absl::Duration asked =
      absl::Seconds(wait.seconds()) + absl::Nanoseconds(wait.nanos());
  return quota::Nanoseconds(absl::ToInt64Nanoseconds(
      std::clamp(asked, absl::ZeroDuration(), absl::Hours(1))));
}

google::protobuf::Timestamp ToProto(absl::Time time) {
  return SecondsAndNanos<google::protobuf::Timestamp>(absl::ToUnixNanos(time));
}

google::protobuf::Duration ToProto(quota::Nanoseconds duration) {
  return SecondsAndNanos<google::protobuf::Duration>(
      std::max<int64_t>(0, duration.count()));
}

absl::Status FromClient(const v1::Error& error) {
  v1::Error kept;
  kept.set_code(error.code());
  const absl::string_view why = error.message().empty()
                                    ? "the client does not say why"
                                    : absl::string_view(error.message());
  kept.set_message(std::string(base::Utf8Front(why, kMostErrorBytes)));
  return proto::FromWireError(kept);
}

v1::BrokerMessage AnswerTo(uint64_t client_id) {
  v1::BrokerMessage answer;
  answer.set_request_id(client_id);
  return answer;
}

v1::BrokerMessage MoveMessage(const Lease& lease, const Mapping& mapping) {
  v1::BrokerMessage message;
  if (lease.move->residence == Residence::kEvicting) {
    message.mutable_evict()->set_lease_id(lease.id.value);
    message.mutable_evict()->set_move(mapping.move);
    return message;
  }
  v1::Map* map = message.mutable_map();
  map->set_lease_id(lease.id.value);
  map->set_move(mapping.move);
  map->set_slabs(static_cast<uint32_t>(lease.held->slabs.size()));
  map->set_bytes(lease.bytes);
  return message;
}

void FillGrant(const State& state, const Lease& lease, v1::Grant* grant) {
  grant->set_lease_id(lease.id.value);
  grant->set_bytes(lease.bytes);
  grant->set_device(state.PoolAt(lease.request.pool).uuid());
  grant->set_slabs(static_cast<uint32_t>(lease.held->slabs.size()));
}

}  // namespace gmb::broker
