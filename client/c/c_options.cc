// The C interface: options of callers that know fewer or more fields.
#include "client/c/c_options.h"

#include <string>
#include <vector>

#include "base/status_macros.h"
#include "client/callback_turn.h"

namespace gmb::internal {
namespace {

std::string FromCString(const char* text) {
  return text == nullptr ? "" : text;
}

template <size_t kSize>
void CopyText(const std::string& from, char (&to)[kSize]) {
  const size_t length = std::min(from.size(), kSize - 1);
  std::memcpy(to, from.data(), length);
  to[length] = '\0';
}

absl::StatusOr<Contents> ContentsFromC(int32_t contents) {
  switch (contents) {
    case GMB_CONTENTS_PRESERVE:
      return Contents::kPreserve;
    case GMB_CONTENTS_DISCARD:
      return Contents::kDiscard;
    case GMB_CONTENTS_RESIDENT:
      return Contents::kResident;
    default:
      return absl::InvalidArgumentError(
          "gmb: contents is none of GMB_CONTENTS_...");
  }
}

absl::Status SetTimeout(int64_t ms, const char* field,
                        absl::Duration& timeout) {
  if (ms < 0) {
    return absl::InvalidArgumentError(
        std::string("gmb: a timeout is below 0: ") + field);
  }
  if (ms > 0) timeout = absl::Milliseconds(ms);
  return absl::OkStatus();
}

// Options that Acquire and Attach have in common: both may wait.
template <typename Given, typename Options>
void ReadWaiting(const Given& given, Options* options) {
  options->wait = WaitFromC(given.wait_ms);
  for (size_t i = 0; i < given.access_from_count; ++i) {
    options->access_from.push_back(FromCString(given.access_from[i]));
  }
  if (given.canceller != nullptr)
    options->cancel = given.canceller->source.get_token();
  if (given.on_waiting != nullptr) {
    options->on_waiting = [call = given.on_waiting,
                           user = given.user](uint64_t ahead) {
      const CallbackTurn turn;
      if (turn.granted()) call(ahead, user);
    };
  }
}

}  // namespace

absl::Duration WaitFromC(int64_t wait_ms) {
  if (wait_ms == GMB_WAIT_NONE) return absl::ZeroDuration();
  return wait_ms < 0 ? absl::InfiniteDuration() : absl::Milliseconds(wait_ms);
}

absl::StatusOr<ClientOptions> FromC(const gmb_client_options* given) {
  GMB_ASSIGN_OR_RETURN(
      gmb_client_options read,
      ReadOptions(given, offsetof(gmb_client_options, user) + sizeof(void*)));
  ClientOptions options;
  options.socket_dir = FromCString(read.socket_dir);
  options.program = FromCString(read.program);
  if (read.tenant_token != nullptr) {
    options.tenant_token.assign(static_cast<const char*>(read.tenant_token),
                                read.tenant_token_bytes);
  }
  absl::Status valid = SetTimeout(read.connect_timeout_ms, "connect_timeout_ms",
                                  options.connect_timeout);
  valid.Update(SetTimeout(read.answer_timeout_ms, "answer_timeout_ms",
                          options.answer_timeout));
  if (!valid.ok()) return valid;
  if (read.on_budget_changed != nullptr) {
    options.on_budget_changed = [call = read.on_budget_changed,
                                 user = read.user](const QuotaView& quota) {
      const gmb_quota view = ToC(quota);
      const CallbackTurn turn;
      if (turn.granted()) call(&view, user);
    };
  }
  if (read.on_draining != nullptr) {
    options.on_draining = [call = read.on_draining,
                           user = read.user](absl::Duration remaining) {
      const CallbackTurn turn;
      if (turn.granted()) call(absl::ToInt64Milliseconds(remaining), user);
    };
  }
  options.automatic_gate = read.automatic_gate != 0;
  if (read.on_trim != nullptr) {
    options.on_trim = [call = read.on_trim, user = read.user](
                          const std::string& device, uint64_t bytes,
                          absl::Duration within) {
      const CallbackTurn turn;
      if (!turn.granted()) return;
      call(device.c_str(), bytes, absl::ToInt64Milliseconds(within), user);
    };
  }
  return options;
}

absl::StatusOr<AcquireOptions> FromC(const gmb_acquire_options* given) {
  GMB_ASSIGN_OR_RETURN(
      gmb_acquire_options read,
      ReadOptions(given, offsetof(gmb_acquire_options, user) + sizeof(void*)));
  AcquireOptions options;
  options.device = FromCString(read.device);
  GMB_ASSIGN_OR_RETURN(options.contents, ContentsFromC(read.contents));
  options.share_as = FromCString(read.share_as);
  options.keep = read.keep != 0;
  ReadWaiting(read, &options);
  return options;
}

absl::StatusOr<AttachOptions> FromC(const gmb_attach_options* given) {
  GMB_ASSIGN_OR_RETURN(
      const gmb_attach_options read,
      ReadOptions(given, offsetof(gmb_attach_options, user) + sizeof(void*)));
  AttachOptions options;
  ReadWaiting(read, &options);
  return options;
}

absl::StatusOr<HeapOptions> FromC(const gmb_heap_options* given) {
  GMB_ASSIGN_OR_RETURN(
      const gmb_heap_options read,
      ReadOptions(given, offsetof(gmb_heap_options, access_from_count) +
                             sizeof(size_t)));
  HeapOptions options;
  options.device = FromCString(read.device);
  if (read.least_growth_bytes > 0)
    options.least_growth_bytes = read.least_growth_bytes;
  if (read.most_growth_bytes > 0)
    options.most_growth_bytes = read.most_growth_bytes;
  if (read.wait_ms != 0) options.wait = WaitFromC(read.wait_ms);
  GMB_ASSIGN_OR_RETURN(options.contents, ContentsFromC(read.contents));
  options.trim = read.keep_empty == 0;
  for (size_t i = 0; i < read.access_from_count; ++i) {
    options.access_from.push_back(FromCString(read.access_from[i]));
  }
  return options;
}

gmb_quota ToC(const QuotaView& quota) {
  gmb_quota view{};
  CopyText(quota.device, view.device);
  view.guarantee_bytes = quota.guarantee_bytes;
  view.limit_bytes = quota.limit_bytes;
  view.leased_bytes = quota.leased_bytes;
  view.unreturned_bytes = quota.unreturned_bytes;
  view.pool_bytes = quota.pool_bytes;
  view.obtainable_bytes = quota.obtainable_bytes;
  view.over_limit_bytes = quota.over_limit_bytes;
  view.weight = quota.weight;
  view.evicted_bytes = quota.evicted_bytes;
  return view;
}

gmb_device ToC(const Device& device) {
  gmb_device view{};
  CopyText(device.uuid, view.uuid);
  CopyText(device.name, view.name);
  view.granularity_bytes = device.granularity_bytes;
  view.total_bytes = device.total_bytes;
  switch (device.kind) {
    case DeviceKind::kVmm:
      view.kind = GMB_DEVICE_VMM;
      break;
    case DeviceKind::kIpc:
      view.kind = GMB_DEVICE_IPC;
      break;
    case DeviceKind::kHost:
      view.kind = GMB_DEVICE_HOST;
      break;
    case DeviceKind::kUnknown:
      view.kind = GMB_DEVICE_UNKNOWN;
      break;
  }
  return view;
}

}  // namespace gmb::internal
