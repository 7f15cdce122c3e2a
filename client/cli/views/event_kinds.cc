// The words that events are known by.
#include "client/cli/views/event_kinds.h"

namespace gmb::cli {

std::vector<std::string> EventKinds() {
  return {
      "acquire_denied",   "acquire_waiting", "backed",
      "client_overdue",   "create_failed",   "device_lost",
      "draining",         "evict_failed",    "evict_started",
      "evicted",          "gate_off",        "gate_on",
      "keeper_found",     "keeper_lost",     "lease_attached",
      "lease_detached",   "lease_exported",  "lease_granted",
      "lease_reclaimed",  "lease_released",  "lease_shared",
      "missing_changed",  "not_kept",        "not_terminated",
      "pause_started",    "pause_withdrawn", "pool_draining",
      "pool_grown",       "pool_in_service", "pool_resized",
      "quota_applied",    "quota_pending",   "reclaim_asked",
      "reload_failed",    "reload_pending",  "reloaded",
      "restart_needed",   "restore_failed",  "restore_started",
      "restored",         "session_adopted", "session_closed",
      "session_not_kept", "session_opened",  "session_refused",
      "tenant_changed",   "tenant_created",  "tenant_deleted",
      "tenant_leaving",   "tenant_stays",    "terminated",
      "trim_answered",    "trim_asked",      "unreturned_changed",
      "unreturned_stuck",
  };
}

}  // namespace gmb::cli
