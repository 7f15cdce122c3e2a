// The file was read again: events for the log and for operators that watch.
#include "broker/daemon/reload_news.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"
#include "proto/amount_text.h"

namespace gmb::broker {

void ReloadNews::Reloaded(const std::string& changes) const {
  v1::Event event;
  event.set_kind("reloaded");
  Publish(std::move(event), changes.empty() ? "nothing changed" : changes);
}

void ReloadNews::Failed(const std::string& why) const {
  v1::Event event;
  event.set_kind("reload_failed");
  Publish(std::move(event), absl::StrCat("nothing was changed: ", why));
}

void ReloadNews::Pending(const HeldBack& held, bool was_seen_off) const {
  v1::Event event;
  event.set_kind("reload_pending");
  event.set_tenant(held.tenant);
  event.set_device(held.device);
  event.set_bytes(held.bytes);
  Publish(std::move(event), PendingText(held, was_seen_off));
}

void ReloadNews::RestartNeeded(const std::string& settings) const {
  v1::Event event;
  event.set_kind("restart_needed");
  Publish(std::move(event),
          absl::StrCat("these hold after a restart alone: ", settings));
}

void ReloadNews::Publish(v1::Event event, const std::string& message) const {
  *event.mutable_at() = ToProto(clock_->WallTime());
  event.set_message(message);
  events_->Publish(std::move(event));
  events_->Wake();
}

uint64_t HeldBytes(const v1::Tenant& tenant) {
  uint64_t bytes = 0;
  for (const v1::TenantPool& pool : tenant.pools())
    bytes += pool.view().leased_bytes() + pool.view().unreturned_bytes();
  return bytes;
}

std::string PendingText(const HeldBack& held, bool was_seen_off) {
  const bool is_tenant = held.device.empty();
  const std::string out_of_file = absl::StrCat(
      "tenant ", held.tenant, ", which the file does not name any more, ");
  if (is_tenant && was_seen_off) {
    return absl::StrCat(
        out_of_file,
        "lost its guarantee, its uids and its token when it was asked to "
        "leave, and stays until its processes end, which hold ",
        proto::FormatBytes(held.bytes), ": end them");
  }
  const std::string what =
      is_tenant ? absl::StrCat(out_of_file,
                               "stays with all that it has, uids and token too")
                : absl::StrCat("the limit of tenant ", held.tenant, " on ",
                               held.device, " stays as it was");
  return absl::StrCat(
      what, ": the file would take ", proto::FormatBytes(held.bytes),
      " from processes, more than is left of reload_may_reclaim: release the "
      "memory, or raise reload_may_reclaim and reload");
}

}  // namespace gmb::broker
