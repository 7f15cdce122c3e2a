// Journals of other releases. tests/broker/keeping/journals/ has one as each
// format wrote it, byte by byte: it is never written anew, and a release that
// cannot read the one before it any more fails here. With GMB_WRITE_JOURNAL=FILE
// the test writes what this release would, for a new format.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>

#include "broker/keeping/journal_file.h"
#include "broker/keeping/left_behind.h"
#include "broker/keeping/record_form.h"
#include "broker/keeping/record_journal.h"
#include "broker/keeping/record_parts.h"
#include "broker/keeping/record_reader.h"
#include "gmb/journal/v1/records.pb.h"
#include "keeper/wire/crc32c.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The records that the fixtures tell.
Records Told() {
  Records told;
  told.head = {
      .session_ids_until = 1025, .lease_ids_until = 2049, .generation = 3};
  told.pools = {{.device = "GPU-1",
                 .baseline_bytes = uint64_t{80} << 30,
                 .draining = true,
                 .debts = {{.tenant = "a", .bytes = 4096}}}};
  SessionRecord session;
  session.id = 7;
  session.token = "sixteen bytes ..";
  session.tenant = "a";
  session.since = absl::FromUnixSeconds(1'700'000'000);
  session.origin = Origin::kTenantDirectory;
  session.tenant_directory = "a";
  session.pid = 4711;
  session.uid = 1000;
  session.gid = 1001;
  session.program = "server";
  session.gate_on = true;
  session.group = "workers";
  session.last_drop = 12;
  told.sessions = {session};
  LeaseRecord lease;
  lease.id = 40;
  lease.session = 7;
  lease.tenant = "a";
  lease.device = "GPU-1";
  lease.bytes = 6 << 20;
  lease.asked_bytes = 5 << 20;
  lease.soft = true;
  lease.mapped = true;
  lease.since = absl::FromUnixSeconds(1'700'000'001);
  lease.share_as = "weights";
  lease.keep = lease.sealed = lease.shared = true;
  lease.place = LeaseRecord::Place::kLeaving;
  lease.slabs = {{11, 2 << 20}, {12, 2 << 20}, {20, 2 << 20}};
  lease.mappings = {{.session = 7,
                     .request = 3,
                     .mapped = true,
                     .unmapped = false,
                     .asked = true}};
  lease.has_room = lease.room_is_true = true;
  lease.room = {{2 << 20, 4 << 20}, {64 << 20, 2 << 20}};
  told.leases = {lease};
  return told;
}

std::string BytesOf(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

void ExpectTold(const Records& found) {
  const Records told = Told();
  EXPECT_EQ(found.head, told.head);
  EXPECT_EQ(found.pools, told.pools);
  EXPECT_EQ(found.sessions, told.sessions);
  EXPECT_EQ(found.leases, told.leases);
}

// The memory of one, as a keeper has it.
SharedFd Memory(const std::string& bytes) {
  base::UniqueFd fd(::memfd_create("journal", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  EXPECT_EQ(::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  return Share(std::move(fd));
}

FoundRecords ReadAll(const SharedFd& memory) {
  auto file = JournalFile::Adopt(
      base::UniqueFd(::fcntl(memory->get(), F_DUPFD_CLOEXEC, 0)));
  EXPECT_TRUE(file.ok()) << file.status();
  const auto contents = file->Read();
  EXPECT_TRUE(contents.ok()) << contents.status();
  auto found = ReadRecords(*contents);
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

TEST(Releases, AJournalOfFormat1IsRead) {
  if (const char* const path = std::getenv("GMB_WRITE_JOURNAL")) {
    auto file = JournalFile::Create(8);
    ASSERT_TRUE(file.ok()) << file.status();
    const char* const memory = file->memory();
    const auto journal = RecordJournal::Begin(*std::move(file), Told());
    ASSERT_TRUE(journal.ok()) << journal.status();
    std::ofstream(path, std::ios::binary)
        .write(memory, static_cast<std::streamsize>(JournalBytes(8)));
  }
  const std::string bytes = BytesOf(GMB_JOURNALS "/format-1.journal");
  ASSERT_FALSE(bytes.empty());
  const FoundRecords found = ReadAll(Memory(bytes));
  EXPECT_THAT(found.set_aside, IsEmpty());
  ExpectTold(found.records);
}

// A release that adds fields and kinds of records, and that the one before it
// can read: what it does not know it leaves out, and says so of records.
TEST(Releases, ANewerOneIsReadAsFarAsItIsKnown) {
  auto file = JournalFile::Create(16);
  ASSERT_TRUE(file.ok()) << file.status();
  auto& header = *reinterpret_cast<JournalHeader*>(file->memory());
  header.format = kJournalFormat + 1;
  header.readable_from = kJournalFormat;
  header.checksum = 0;
  header.checksum =
      keeper::Crc32c({reinterpret_cast<const char*>(&header), sizeof(header)});
  const auto empty = file->Read();
  ASSERT_TRUE(empty.ok()) << empty.status();
  JournalWriter writer(file->memory(), *empty);
  const auto write = [&](RecordKind kind, uint64_t id, std::string bytes) {
    // A field of a number that nobody has here.
    bytes += "\xfa\x7f\x03new";
    ASSERT_EQ(PartsOf(bytes.size()), 1U);
    ASSERT_TRUE(writer
                    .Write(*writer.NewSlot(), static_cast<uint16_t>(kind),
                           EncodePart(id, bytes, 0))
                    .ok());
  };
  const Records told = Told();
  write(RecordKind::kHead, 0, EncodeRecord(told.head));
  write(RecordKind::kPool, 1, EncodeRecord(told.pools[0]));
  write(RecordKind::kSession, 7, EncodeRecord(told.sessions[0]));
  write(RecordKind::kLease, 40, EncodeRecord(told.leases[0]));
  write(static_cast<RecordKind>(9), 5, "news");
  writer.Commit();
  const FoundRecords found =
      ReadAll(Share(base::UniqueFd(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0))));
  EXPECT_THAT(found.set_aside, ElementsAre(HasSubstr("kind is not known")));
  ExpectTold(found.records);
}

// And the other things in its keeper: those of a name that is not known here
// are given back, and named.
TEST(Releases, WhatANewerOneKeepsBesideIsNamed) {
  auto left =
      Sort({{.key = "journal/8",
             .fds = {Memory(BytesOf(GMB_JOURNALS "/format-1.journal"))}},
            {.key = "session/7",
             .fds = {Memory("a"), Memory("b"), Memory("c")},
             .peer = 1},
            {.key = "listener/a", .fds = {Memory("d")}}});
  ASSERT_TRUE(left.ok()) << left.status();
  ExpectTold(left->records);
  EXPECT_THAT(left->set_aside, ElementsAre(HasSubstr("listener/a")));
  EXPECT_THAT(left->old_keys, ElementsAre("journal/8", "listener/a"));
}

}  // namespace
}  // namespace gmb::broker
