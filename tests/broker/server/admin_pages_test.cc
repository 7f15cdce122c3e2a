// Long lists over the real service: no answer is larger than a client of gRPC
// receives.
#include <gmock/gmock.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "broker/store/database.h"
#include "tests/broker/server/admin_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

constexpr int64_t kRecords = kKeptAuditRecords;

// The audit log is full.
class AdminPagesTest : public AdminFixture {
 protected:
  void OpenStore() override {
    // With the tables, and closed again.
    (void)QuotaStore::Open(directory_.path()).value();
    auto database = Database::Open(directory_ / "gmb.db");
    ASSERT_TRUE(database.ok()) << database.status();
    ASSERT_TRUE(
        database
            ->Execute(
                absl::StrCat(
                    "INSERT INTO audit(at_ns, operator_name, action, subject, "
                    "detail) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT "
                    "i + 1 FROM n WHERE i < ",
                    kRecords,
                    ") SELECT i, 'uid 0', 'set_tenant', 't' || i, "
                    "printf('%.200c', 'd') FROM n")
                    .c_str())
            .ok());
    AdminFixture::OpenStore();
  }

  absl::StatusOr<v1::ListAuditResponse> Page(int32_t size,
                                             const std::string& token) {
    v1::ListAuditRequest request;
    request.set_page_size(size);
    request.set_page_token(token);
    v1::ListAuditResponse response;
    const absl::Status listed =
        Call(&v1::Admin::Stub::ListAudit, request, &response);
    if (!listed.ok()) return listed;
    return response;
  }
};

TEST_F(AdminPagesTest, AFullAuditLogIsListedWhileOperatorsAct) {
  std::set<std::string> subjects;
  std::string token;
  int pages = 0;
  do {
    const auto page = Page(1'000, token);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::AuditEntry& entry : page->entries())
      ASSERT_TRUE(subjects.insert(entry.subject()).second) << entry.subject();
    token = page->next_page_token();
    if (++pages % 10 != 0) continue;
    // Newer than all that was listed; the oldest one is forgotten for it.
    v1::SetTenantRequest request;
    request.set_name(absl::StrCat("made-", pages));
    v1::SetTenantResponse response;
    ASSERT_TRUE(Call(&v1::Admin::Stub::SetTenant, request, &response).ok());
  } while (!token.empty());
  EXPECT_GE(pages, kRecords / 1'000);
  for (int64_t i = 20; i <= kRecords; ++i)
    ASSERT_TRUE(subjects.contains(absl::StrCat("t", i))) << i;
}

TEST_F(AdminPagesTest, WhoNamesNoSizeGetsAHundredAndIsToldOfMore) {
  const auto page = Page(0, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->entries(), SizeIs(100));
  EXPECT_EQ(page->entries(0).subject(), absl::StrCat("t", kRecords));
  EXPECT_NE(page->next_page_token(), "");
}

// A client of an older version asks for as many as it wants.
TEST_F(AdminPagesTest, WhoAsksForMoreThanAPageGetsOne) {
  const auto page = Page(100'000, "");
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_THAT(page->entries(), SizeIs(1'000));
  EXPECT_NE(page->next_page_token(), "");
}

TEST_F(AdminPagesTest, LongRecordsMakeShortPages) {
  AuditRecord record;
  record.action = "set_tenant";
  record.subject = "long";
  record.detail = std::string(100'000, 'x');
  for (int i = 0; i < 200; ++i)
    ASSERT_TRUE(store_->Audit(record, [] { return absl::OkStatus(); }).ok());
  std::string token;
  int listed = 0;
  while (listed < 200) {
    const auto page = Page(1'000, token);
    ASSERT_TRUE(page.ok()) << page.status();
    EXPECT_LT(page->ByteSizeLong(), 3U << 20);
    for (const v1::AuditEntry& entry : page->entries()) {
      if (entry.subject() != "long") continue;
      ++listed;
      EXPECT_THAT(entry.detail(), HasSubstr("bytes more in the database"));
    }
    token = page->next_page_token();
    ASSERT_NE(token, "");
  }
}

TEST_F(AdminPagesTest, BadTokensAndSizesAreRefused) {
  for (const auto& [size, token] : std::vector<std::pair<int32_t, std::string>>{
           {-1, ""}, {0, "garbage"}, {0, "Y2hhbmdlcyAgeA=="}}) {
    EXPECT_EQ(ReasonOf(Page(size, token).status()), v1::BAD_REQUEST) << token;
  }
  v1::ListSessionsRequest of_sessions;
  of_sessions.set_page_token("garbage");
  v1::ListSessionsResponse none;
  EXPECT_EQ(ReasonOf(Call(&v1::Admin::Stub::ListSessions, of_sessions, &none)),
            v1::BAD_REQUEST);
}

}  // namespace
}  // namespace gmb::broker
