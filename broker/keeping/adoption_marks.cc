// Adoption's own record: what is in hand, and what brokers have died of.
#include "broker/keeping/adoption_marks.h"

#include <fcntl.h>

#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "keeper/wire/bytes.h"

namespace gmb::broker {
namespace {

// One for what is in hand; the rest for records that have been in hand at a
// death. Those that find no room are counted anew.
constexpr uint32_t kSlots = 64;
// Kinds of the journal's records, here.
constexpr uint16_t kInHand = 1;
constexpr uint16_t kDied = 2;

std::string Encode(AdoptionMarks::Step step, const RecordKey& key,
                   uint32_t count) {
  return keeper::ByteWriter()
      .Number(static_cast<uint16_t>(step))
      .Number(static_cast<uint16_t>(key.kind))
      .Number(key.id)
      .Number(count)
      .Take();
}

}  // namespace

absl::StatusOr<std::unique_ptr<AdoptionMarks>> AdoptionMarks::Begin(
    const SharedFd& last) {
  if (std::unique_ptr<AdoptionMarks> marks = GoOn(last); marks != nullptr)
    return marks;
  GMB_ASSIGN_OR_RETURN(JournalFile file, JournalFile::Create(kSlots));
  GMB_ASSIGN_OR_RETURN(const JournalContents empty, file.Read());
  std::unique_ptr<AdoptionMarks> marks(
      new AdoptionMarks(std::move(file), empty, /*is_new=*/true));
  GMB_ASSIGN_OR_RETURN(marks->in_hand_slot_, marks->writer_.NewSlot());
  return marks;
}

std::unique_ptr<AdoptionMarks> AdoptionMarks::GoOn(const SharedFd& last) {
  if (last == nullptr) return nullptr;
  absl::StatusOr<JournalFile> file = JournalFile::Adopt(
      base::UniqueFd(::fcntl(last->get(), F_DUPFD_CLOEXEC, 0)));
  if (!file.ok()) return nullptr;
  const absl::StatusOr<JournalContents> found = file->Read();
  if (!found.ok() || !found->damaged.empty()) return nullptr;
  std::unique_ptr<AdoptionMarks> marks(
      new AdoptionMarks(*std::move(file), *found, /*is_new=*/false));
  if (!marks->Read(*found)) return nullptr;
  marks->Count(marks->in_hand_);
  marks->LetGo();
  return marks;
}

AdoptionMarks::AdoptionMarks(JournalFile file, const JournalContents& found,
                             bool is_new)
    : file_(std::move(file)),
      writer_(file_.memory(), found),
      is_new_(is_new),
      in_nobodys_hand_(Encode(Step::kNone, {}, 0)) {}

bool AdoptionMarks::Read(const JournalContents& found) {
  bool has_hand = false;
  for (const JournalRecord& record : found.records) {
    keeper::ByteReader reader(record.contents);
    Mark mark;
    mark.first = static_cast<Step>(reader.Number<uint16_t>());
    mark.second.kind = static_cast<RecordKind>(reader.Number<uint16_t>());
    mark.second.id = reader.Number<uint64_t>();
    const auto count = reader.Number<uint32_t>();
    if (!reader.AtEnd()) return false;
    if (record.kind == kInHand && !has_hand) {
      has_hand = true;
      in_hand_slot_ = record.slot;
      in_hand_ = mark;
    } else if (record.kind == kDied) {
      deaths_[mark] = {record.slot, count};
    } else {
      return false;
    }
  }
  if (has_hand) return true;
  const absl::StatusOr<uint32_t> slot = writer_.NewSlot();
  if (slot.ok()) in_hand_slot_ = *slot;
  return slot.ok();
}

void AdoptionMarks::Count(const Mark& mark) {
  if (mark.first == Step::kNone) return;
  const auto [died, is_new] = deaths_.try_emplace(mark);
  if (is_new) {
    const absl::StatusOr<uint32_t> slot = writer_.NewSlot();
    if (!slot.ok()) return void(deaths_.erase(died));
    died->second.slot = *slot;
  }
  ++died->second.count;
  // Of a known size: it can't fail. Committed with what is in hand next.
  (void)writer_.Write(died->second.slot, kDied,
                      Encode(mark.first, mark.second, died->second.count));
}

bool AdoptionMarks::IsPoison(Step step, const RecordKey& key) const {
  const auto died = deaths_.find({step, key});
  return died != deaths_.end() && died->second.count >= kDeaths;
}

void AdoptionMarks::Take(Step step, const RecordKey& key) {
  Hold({step, key}, Encode(step, key, 0));
}

void AdoptionMarks::Hold(const Mark& mark, absl::string_view encoded) {
  if (in_hand_ == mark) return;
  in_hand_ = mark;
  (void)writer_.Write(in_hand_slot_, kInHand, encoded);
  writer_.Commit();
}

}  // namespace gmb::broker
