#ifndef GMB_BROKER_KEEPING_RECORD_PARTS_H_
#define GMB_BROKER_KEEPING_RECORD_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/keeping/journal_format.h"

// A record's name, and how its bytes are cut to the size of the journal's
// slots. Pure.
namespace gmb::broker {

enum class RecordKind : uint16_t {
  kHead = 1,
  kPool = 2,
  kSession = 3,
  kLease = 4,
};

// Which record. Pools are numbered by the journal; there is one head, 0.
struct RecordKey {
  RecordKind kind{};
  uint64_t id = 0;

  template <typename H>
  friend H AbslHashValue(H h, const RecordKey& key) {
    return H::combine(std::move(h), key.kind, key.id);
  }
  friend bool operator==(const RecordKey&, const RecordKey&) = default;
  friend bool operator<(const RecordKey& a, const RecordKey& b) {
    return std::pair(a.kind, a.id) < std::pair(b.kind, b.id);
  }
};
// "lease 17", for messages.
[[nodiscard]] std::string NameOf(const RecordKey& key);

// The contents of a slot: a part of one record.
struct RecordPart {
  uint64_t id = 0;
  uint16_t part = 0;  // of `parts`, from 0 on
  uint16_t parts = 0;
  absl::string_view bytes;
};
inline constexpr size_t kPartHeadBytes = 12;
inline constexpr size_t kPartBytes = kJournalContentsBytes - kPartHeadBytes;
inline constexpr size_t kMostParts = 65535;

// At least one. A record of more than kMostParts cannot be written.
[[nodiscard]] constexpr size_t PartsOf(size_t bytes) {
  return bytes == 0 ? 1 : (bytes + kPartBytes - 1) / kPartBytes;
}
// Part number `part` of a record, as its slot has it.
[[nodiscard]] std::string EncodePart(uint64_t id, absl::string_view record,
                                     size_t part);
// INVALID_ARGUMENT: no part. `contents` must outlive the answer.
[[nodiscard]] absl::StatusOr<RecordPart> DecodePart(absl::string_view contents);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_RECORD_PARTS_H_
