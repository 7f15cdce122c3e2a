// The promises of the last broker, as its journal has them.
#include "broker/keeping/record_reader.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "broker/keeping/record_form.h"
#include "broker/keeping/record_parts.h"

namespace gmb::broker {
namespace {

// The parts of one record that were found.
struct Pieces {
  std::map<uint16_t, absl::string_view> parts;
  uint16_t expected = 0;  // how many
  bool contradicts = false;
};
using FoundPieces = std::map<RecordKey, Pieces>;

FoundPieces Collect(const JournalContents& journal,
                    std::vector<std::string>* set_aside) {
  FoundPieces found;
  for (const JournalRecord& record : journal.records) {
    const absl::StatusOr<RecordPart> part = DecodePart(record.contents);
    if (!part.ok()) {
      set_aside->push_back(
          absl::StrCat("slot ", record.slot, ": ", part.status().message()));
      continue;
    }
    Pieces& pieces = found[{static_cast<RecordKind>(record.kind), part->id}];
    const bool first = pieces.parts.empty();
    const bool is_new = pieces.parts.emplace(part->part, part->bytes).second;
    if (!is_new || (!first && pieces.expected != part->parts))
      pieces.contradicts = true;
    pieces.expected = part->parts;
  }
  return found;
}

absl::StatusOr<std::string> Join(const Pieces& pieces) {
  if (pieces.contradicts)
    return absl::DataLossError("its parts are of two records");
  if (pieces.parts.size() != pieces.expected) {
    return absl::DataLossError(absl::StrCat(pieces.parts.size(), " of its ",
                                            pieces.expected,
                                            " parts can be read"));
  }
  std::string bytes;
  for (const auto& [part, its] : pieces.parts) absl::StrAppend(&bytes, its);
  return bytes;
}

template <typename Record>
absl::Status Append(absl::StatusOr<Record> record, std::vector<Record>* all) {
  if (!record.ok()) return record.status();
  all->push_back(*std::move(record));
  return absl::OkStatus();
}

absl::Status Take(const RecordKey& key, const std::string& bytes,
                  Records* records, bool* has_head) {
  switch (key.kind) {
    case RecordKind::kHead: {
      absl::StatusOr<HeadRecord> head = DecodeHead(bytes);
      if (!head.ok() || key.id != 0)
        return absl::DataLossError("it is no head");
      records->head = *head;
      *has_head = true;
      return absl::OkStatus();
    }
    case RecordKind::kPool:
      return Append(DecodePool(bytes), &records->pools);
    case RecordKind::kSession:
      return Append(DecodeSession(key.id, bytes), &records->sessions);
    case RecordKind::kLease:
      return Append(DecodeLease(key.id, bytes), &records->leases);
  }
  return absl::DataLossError("its kind is not known here");
}

// Leases with a slab, or a piece of the host pool, that another one has too:
// nobody knows whose it is, and it is no tenant's to read.
std::map<uint64_t, std::string> Disputed(
    const std::vector<LeaseRecord>& leases) {
  std::map<uint64_t, std::string> disputed;
  const auto dispute = [&](uint64_t a, uint64_t b, absl::string_view what) {
    disputed[a] = absl::StrCat("lease ", b, " has the same ", what);
    disputed[b] = absl::StrCat("lease ", a, " has the same ", what);
  };
  absl::flat_hash_map<SlabId, uint64_t> slabs;
  struct Piece {
    device::HostExtent extent;
    uint64_t lease;
  };
  std::vector<Piece> rooms;
  for (const LeaseRecord& lease : leases) {
    for (const SlabRecord& slab : lease.slabs) {
      const auto [other, is_new] = slabs.try_emplace(slab.id, lease.id);
      if (!is_new) dispute(other->second, lease.id, "slab");
    }
    for (const device::HostExtent& extent : lease.room)
      rooms.push_back({extent, lease.id});
  }
  std::sort(rooms.begin(), rooms.end(), [](const Piece& a, const Piece& b) {
    return a.extent.offset < b.extent.offset;
  });
  uint64_t end = 0;  // of all rooms so far
  uint64_t of = 0;
  for (const Piece& piece : rooms) {
    if (piece.extent.offset < end)
      dispute(of, piece.lease, "piece of the host pool");
    const uint64_t its_end = piece.extent.offset + piece.extent.bytes;
    if (its_end <= end) continue;
    end = its_end;
    of = piece.lease;
  }
  return disputed;
}

void SetDisputedAside(FoundRecords* found) {
  std::vector<LeaseRecord>& leases = found->records.leases;
  const std::map<uint64_t, std::string> disputed = Disputed(leases);
  for (const auto& [lease, why] : disputed)
    found->set_aside.push_back(absl::StrCat("lease ", lease, ": ", why));
  leases.erase(std::remove_if(leases.begin(), leases.end(),
                              [&](const LeaseRecord& lease) {
                                return disputed.count(lease.id) > 0;
                              }),
               leases.end());
}

// Two sessions with one token, or two records of one pool.
void SetDoublesAside(FoundRecords* found) {
  std::set<std::string> seen;
  std::vector<SessionRecord> sessions;
  for (SessionRecord& session : found->records.sessions) {
    if (seen.insert(session.token).second) {
      sessions.push_back(std::move(session));
      continue;
    }
    found->set_aside.push_back(absl::StrCat(
        "session ", session.id, ": another one has the same token"));
  }
  found->records.sessions = std::move(sessions);
  seen.clear();
  std::vector<PoolRecord> pools;
  for (PoolRecord& pool : found->records.pools) {
    if (seen.insert(pool.device).second) {
      pools.push_back(std::move(pool));
      continue;
    }
    found->set_aside.push_back(
        absl::StrCat("pool ", pool.device, ": it has two records"));
  }
  found->records.pools = std::move(pools);
}

}  // namespace

absl::StatusOr<FoundRecords> ReadRecords(const JournalContents& journal,
                                         AdoptionMarks* marks) {
  constexpr auto kReading = AdoptionMarks::Step::kReading;
  FoundRecords all;
  for (const uint32_t slot : journal.damaged)
    all.set_aside.push_back(absl::StrCat("slot ", slot, ": it is damaged"));
  bool has_head = false;
  for (const auto& [key, pieces] : Collect(journal, &all.set_aside)) {
    if (marks != nullptr && marks->IsPoison(kReading, key)) {
      all.set_aside.push_back(
          absl::StrCat(NameOf(key), ": brokers have died while they read it"));
      continue;
    }
    if (marks != nullptr) marks->Take(kReading, key);
    const absl::StatusOr<std::string> bytes = Join(pieces);
    const absl::Status taken = bytes.ok()
                                   ? Take(key, *bytes, &all.records, &has_head)
                                   : bytes.status();
    if (!taken.ok())
      all.set_aside.push_back(absl::StrCat(NameOf(key), ": ", taken.message()));
  }
  if (marks != nullptr) marks->LetGo();
  if (!has_head && (!journal.records.empty() || !journal.damaged.empty())) {
    return absl::DataLossError(
        "the journal's head cannot be read: nobody knows which numbers were "
        "given out");
  }
  SetDisputedAside(&all);
  SetDoublesAside(&all);
  return all;
}

}  // namespace gmb::broker
