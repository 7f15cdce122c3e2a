#ifndef GMB_CLIENT_CLI_TEXT_TEXT_H_
#define GMB_CLIENT_CLI_TEXT_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "gmb/v1/types.pb.h"
#include "google/protobuf/duration.pb.h"
#include "google/protobuf/timestamp.pb.h"

namespace gmb::cli {

// How quantities are written for people.

// "1.50 GiB", "512.00 MiB", "17 B".
[[nodiscard]] std::string SizeText(uint64_t bytes);
// "25%" or SizeText; "-" when not set.
[[nodiscard]] std::string AmountText(const v1::Amount& amount);
// "37.5%"; "-" when the whole is 0.
[[nodiscard]] std::string PercentText(uint64_t part, uint64_t whole);
// "3d 4h", "12m 5s", "1.5 s", "12 ms".
[[nodiscard]] std::string DurationText(absl::Duration duration);
// "2026-05-04T17:03:21.042115Z": UTC, as the broker's log has it, so that a line
// of one is found in the other.
[[nodiscard]] std::string TimeText(const google::protobuf::Timestamp& time);
// How long ago `time` was, "-" when it is not set.
[[nodiscard]] std::string AgeText(const google::protobuf::Timestamp& time,
                                  absl::Time now);
// "1 slab", "2 slabs".
[[nodiscard]] std::string CountText(uint64_t count, absl::string_view thing);
// "vmm", "ipc", "host".
[[nodiscard]] std::string KindText(v1::DeviceKind kind);
// "TENANT_LIMIT", also for reasons of a newer broker ("REASON_40").
[[nodiscard]] std::string ReasonText(v1::ErrorReason reason);

[[nodiscard]] absl::Duration ToDuration(
    const google::protobuf::Duration& duration);
[[nodiscard]] google::protobuf::Duration ToProto(absl::Duration duration);
[[nodiscard]] absl::Time ToTime(const google::protobuf::Timestamp& time);

// Control characters become '?': what a program calls itself must not be able
// to move an operator's cursor.
[[nodiscard]] std::string Printable(absl::string_view text);
// Lines of at most `columns` bytes, broken at spaces; a longer word stays
// whole.
[[nodiscard]] std::vector<std::string> Wrap(const std::string& text,
                                            size_t columns);
// Characters that `text` takes on a terminal: UTF-8 code points, all of
// width 1.
[[nodiscard]] size_t DisplayWidth(absl::string_view text);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_TEXT_TEXT_H_
