// Bytes that only an operator can bring back, in words.
#include "broker/report/stuck_text.h"

#include "absl/strings/str_cat.h"
#include "proto/amount_text.h"

namespace gmb::broker::report {

std::string StuckText(const StuckBytes& stuck) {
  return absl::StrCat(
      proto::FormatBytes(stuck.bytes),
      " were released and do not come back by themselves: ", stuck.why);
}

}  // namespace gmb::broker::report
