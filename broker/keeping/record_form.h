#ifndef GMB_BROKER_KEEPING_RECORD_FORM_H_
#define GMB_BROKER_KEEPING_RECORD_FORM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/records.h"

// A record's bytes: protobuf (gmb/journal/v1/records.proto). Pure.
namespace gmb::broker {

[[nodiscard]] std::string EncodeRecord(const HeadRecord& head);
[[nodiscard]] std::string EncodeRecord(const PoolRecord& pool);
[[nodiscard]] std::string EncodeRecord(const SessionRecord& session);
[[nodiscard]] std::string EncodeRecord(const LeaseRecord& lease);

// DATA_LOSS: the bytes are no such record, or it contradicts itself. `id`: that
// of its key.
[[nodiscard]] absl::StatusOr<HeadRecord> DecodeHead(absl::string_view bytes);
[[nodiscard]] absl::StatusOr<PoolRecord> DecodePool(absl::string_view bytes);
[[nodiscard]] absl::StatusOr<SessionRecord> DecodeSession(
    uint64_t id, absl::string_view bytes);
[[nodiscard]] absl::StatusOr<LeaseRecord> DecodeLease(uint64_t id,
                                                      absl::string_view bytes);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_RECORD_FORM_H_
