// Reads any bytes as a journal, and what slots of any contents say: nothing
// crashes, and what is accepted can be written again.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "broker/keeping/record_journal.h"
#include "broker/keeping/record_reader.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using broker::JournalContents;

void CheckRecords(const JournalContents& contents) {
  const auto found = broker::ReadRecords(contents);
  if (!found.ok()) return;
  auto file = broker::JournalFile::Create(1 << 9);
  if (!file.ok()) return;
  const auto journal =
      broker::RecordJournal::Begin(*std::move(file), found->records);
  if (!journal.ok()) return;
  const auto again = broker::ReadRecords(*(*journal)->file().Read());
  Require(again.ok() && again->set_aside.empty() &&
              again->records.leases == found->records.leases &&
              again->records.sessions == found->records.sessions,
          "records that were read can be written and read again");
}

}  // namespace

void FuzzRecords(Bytes bytes) {
  // As the memory of a journal.
  std::vector<uint64_t> memory((bytes.size() + 7) / 8);
  if (!bytes.empty()) std::memcpy(memory.data(), bytes.data(), bytes.size());
  const auto journal = broker::ReadJournal(
      {reinterpret_cast<const char*>(memory.data()), bytes.size()});
  if (journal.ok()) CheckRecords(*journal);
  // As slots: a byte of kind, a byte of length, and the contents.
  JournalContents contents;
  contents.records.push_back({.slot = 0,
                              .kind = 1,
                              .commit = 1,
                              .contents = broker::EncodePart(0, "", 0)});
  for (Input input(bytes); !input.empty();) {
    const auto kind = static_cast<uint16_t>(1 + input.Below(5));
    contents.records.push_back(
        {.slot = static_cast<uint32_t>(contents.records.size()),
         .kind = kind,
         .commit = 1,
         .contents = input.ShortText()});
  }
  CheckRecords(contents);
}

}  // namespace gmb::fuzz
