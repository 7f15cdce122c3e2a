// A record in as many of the journal's slots as it needs.
#include "broker/keeping/record_parts.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "keeper/wire/bytes.h"

namespace gmb::broker {

std::string NameOf(const RecordKey& key) {
  switch (key.kind) {
    case RecordKind::kHead:
      return "the head";
    case RecordKind::kPool:
      return absl::StrCat("pool ", key.id);
    case RecordKind::kSession:
      return absl::StrCat("session ", key.id);
    case RecordKind::kLease:
      return absl::StrCat("lease ", key.id);
  }
  return absl::StrCat("record ", key.id, " of kind ",
                      static_cast<uint16_t>(key.kind));
}

std::string EncodePart(uint64_t id, absl::string_view record, size_t part) {
  std::string contents =
      keeper::ByteWriter()
          .Number(id)
          .Number(static_cast<uint16_t>(part))
          .Number(static_cast<uint16_t>(PartsOf(record.size())))
          .Take();
  const absl::string_view bytes = record.substr(part * kPartBytes, kPartBytes);
  contents.append(bytes.data(), bytes.size());
  return contents;
}

absl::StatusOr<RecordPart> DecodePart(absl::string_view contents) {
  keeper::ByteReader reader(contents);
  RecordPart part;
  part.id = reader.Number<uint64_t>();
  part.part = reader.Number<uint16_t>();
  part.parts = reader.Number<uint16_t>();
  if (!reader.ok() || part.part >= part.parts)
    return absl::InvalidArgumentError("no part of a record");
  part.bytes = contents.substr(kPartHeadBytes);
  return part;
}

}  // namespace gmb::broker
