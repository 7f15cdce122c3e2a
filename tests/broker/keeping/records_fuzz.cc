// Reads any bytes as a journal, and what slots of any contents say: nothing
// crashes, and what is accepted can be written again.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "broker/keeping/record_journal.h"
#include "broker/keeping/record_reader.h"

namespace {

using gmb::broker::FoundRecords;
using gmb::broker::JournalContents;

void Check(const JournalContents& contents) {
  const auto found = gmb::broker::ReadRecords(contents);
  if (!found.ok()) return;
  auto file = gmb::broker::JournalFile::Create(1 << 9);
  if (!file.ok()) return;
  const auto journal =
      gmb::broker::RecordJournal::Begin(*std::move(file), found->records);
  if (!journal.ok()) return;
  const auto again = gmb::broker::ReadRecords(*(*journal)->file().Read());
  if (!again.ok() || !again->set_aside.empty() ||
      again->records.leases != found->records.leases ||
      again->records.sessions != found->records.sessions) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // As the memory of a journal.
  std::vector<uint64_t> memory((size + 7) / 8);
  if (size > 0) std::memcpy(memory.data(), data, size);
  const auto journal = gmb::broker::ReadJournal(
      {reinterpret_cast<const char*>(memory.data()), size});
  if (journal.ok()) Check(*journal);
  // As slots: a byte of kind, a byte of length, and the contents.
  JournalContents contents;
  contents.records.push_back({.slot = 0,
                              .kind = 1,
                              .commit = 1,
                              .contents = gmb::broker::EncodePart(0, "", 0)});
  for (size_t at = 0; at + 2 <= size;) {
    const size_t bytes = std::min<size_t>(data[at + 1], size - at - 2);
    contents.records.push_back(
        {.slot = static_cast<uint32_t>(contents.records.size()),
         .kind = static_cast<uint16_t>(1 + data[at] % 5),
         .commit = 1,
         .contents =
             std::string(reinterpret_cast<const char*>(data + at + 2), bytes)});
    at += 2 + bytes;
  }
  Check(contents);
  return 0;
}
