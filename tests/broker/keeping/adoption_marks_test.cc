// The records that a broker has in hand while it takes over, as its successors
// find them.
#include "broker/keeping/adoption_marks.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "broker/keeping/journal_file.h"

namespace gmb::broker {
namespace {

using Step = AdoptionMarks::Step;

constexpr RecordKey kLease{RecordKind::kLease, 7};
constexpr RecordKey kSession{RecordKind::kSession, 7};

// The keeper's share of it.
SharedFd Keep(const AdoptionMarks& marks) {
  return Share(base::UniqueFd(::fcntl(marks.fd(), F_DUPFD_CLOEXEC, 0)));
}

std::unique_ptr<AdoptionMarks> Begin(const SharedFd& last) {
  auto marks = AdoptionMarks::Begin(last);
  EXPECT_TRUE(marks.ok()) << marks.status();
  return *std::move(marks);
}

TEST(AdoptionMarks, ARecordInHandAtTwoDeathsIsPoison) {
  auto marks = Begin(nullptr);
  EXPECT_TRUE(marks->is_new());
  const SharedFd kept = Keep(*marks);
  for (int deaths = 0; deaths < 2; ++deaths) {
    EXPECT_FALSE(marks->IsPoison(Step::kTaking, kLease)) << deaths;
    marks->Take(Step::kTaking, kSession);
    marks->Take(Step::kTaking, kLease);
    marks = Begin(kept);
    EXPECT_FALSE(marks->is_new());
  }
  EXPECT_TRUE(marks->IsPoison(Step::kTaking, kLease));
  EXPECT_FALSE(marks->IsPoison(Step::kReading, kLease));
  EXPECT_FALSE(marks->IsPoison(Step::kTaking, kSession));
  // It stays so, also where another one is in hand at the next death.
  marks->Take(Step::kReading, kSession);
  marks = Begin(kept);
  EXPECT_TRUE(marks->IsPoison(Step::kTaking, kLease));
  EXPECT_FALSE(marks->IsPoison(Step::kReading, kSession));
}

TEST(AdoptionMarks, ADeathWithNothingInHandIsNoRecords) {
  auto marks = Begin(nullptr);
  const SharedFd kept = Keep(*marks);
  for (int deaths = 0; deaths < 3; ++deaths) {
    marks->Take(Step::kTaking, kLease);
    marks->LetGo();
    marks = Begin(kept);
  }
  EXPECT_FALSE(marks->IsPoison(Step::kTaking, kLease));
}

TEST(AdoptionMarks, AsManyAsMayBeDoNotFit) {
  auto marks = Begin(nullptr);
  const SharedFd kept = Keep(*marks);
  for (uint64_t id = 1; id <= 200; ++id) {
    marks->Take(Step::kTaking, {RecordKind::kLease, id});
    marks = Begin(kept);
    ASSERT_FALSE(marks->is_new());
  }
}

TEST(AdoptionMarks, OtherMemoryCountsAsNone) {
  auto marks = Begin(nullptr);
  marks->Take(Step::kTaking, kLease);
  const SharedFd kept = Keep(*marks);
  // Another journal's record.
  auto file = JournalFile::Create(4);
  ASSERT_TRUE(file.ok());
  auto found = file->Read();
  ASSERT_TRUE(found.ok());
  JournalWriter writer(file->memory(), *found);
  ASSERT_TRUE(writer.Write(*writer.NewSlot(), 3, "x").ok());
  writer.Commit();
  EXPECT_TRUE(
      Begin(Share(base::UniqueFd(::fcntl(file->fd(), F_DUPFD_CLOEXEC, 0))))
          ->is_new());
  EXPECT_TRUE(
      Begin(Share(base::UniqueFd(::open("/dev/null", O_RDONLY))))->is_new());
}

}  // namespace
}  // namespace gmb::broker
