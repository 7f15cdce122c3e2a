#ifndef GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_
#define GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "quota/reclaim.h"

namespace gmb::broker {

// The leases that have it, and what they come to.
struct VerdictSum {
  uint64_t leases = 0;
  uint64_t bytes = 0;
};
using VerdictSums = std::map<quota::Verdict, VerdictSum>;

// Why leases stay, one sentence a reason, those that hold most first.
[[nodiscard]] std::vector<std::string> VerdictSentences(
    const VerdictSums& sums);

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_VERDICT_SENTENCES_H_
