// Eviction: why a lease was or was not taken, in words.
#include "quota/reclaim.h"

namespace gmb::quota {

absl::string_view VerdictText(Verdict verdict) {
  switch (verdict) {
    case Verdict::kTaken:
      return "taken";
    case Verdict::kNotNeeded:
      return "others come first";
    case Verdict::kOwn:
      return "belongs to the session that asks";
    case Verdict::kNotAsked:
      return "of a tenant that is not asked";
    case Verdict::kEvicted:
      return "already evicted";
    case Verdict::kBusy:
      return "a step or a copy is under way";
    case Verdict::kResident:
      return "RESIDENT, or on a device that cannot evict";
    case Verdict::kGateOff:
      return "the program does not use the gate, or another of its group does "
             "not";
    case Verdict::kActive:
      return "active";
    case Verdict::kMayNotTerminate:
      return "does not answer, and policy forbids to terminate it";
    case Verdict::kDistrusted:
      return "its process, or others of its tenant, do not answer";
    case Verdict::kNoHostRoom:
      return "no room in the host pool for its contents";
    case Verdict::kYoung:
      return "resident for too short a time";
    case Verdict::kBackOff:
      return "failed lately, left alone for a while";
    case Verdict::kPauseFailed:
      return "at work, and a pause failed lately: not paused for a while";
    case Verdict::kGuaranteed:
      return "within its tenant's guarantee";
    case Verdict::kTooMany:
      return "the plan has as many victims as it may";
    case Verdict::kInsufficient:
      return "all that could be taken would not be enough";
  }
  return "unknown";
}

}  // namespace gmb::quota
