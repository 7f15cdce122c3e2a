// Usage on the disk.
#include "broker/usage/usage_store.h"

#include <sys/stat.h>

#include <fstream>
#include <utility>

#include "broker/store/database.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class UsageStoreTest : public ::testing::Test {
 protected:
  std::unique_ptr<UsageStore> OpenOrDie(
      const UsageStore::Kept& kept = UsageStore::Kept()) {
    auto store =
        UsageStore::Open(directory_.path(), absl::Now(), &aside_, kept);
    EXPECT_TRUE(store.ok()) << store.status();
    return store.ok() ? *std::move(store) : nullptr;
  }
  std::string Path() const { return directory_ / "usage.db"; }

  // "day/tenant/device peak", in their order.
  static std::vector<std::string> Listed(
      UsageStore* store, int64_t since = 0, const std::string& tenant = "",
      const std::optional<UsageKey>& after = std::nullopt, size_t most = 100) {
    const auto rows = store->List(since, tenant, after, most);
    EXPECT_TRUE(rows.ok()) << rows.status();
    std::vector<std::string> texts;
    if (!rows.ok()) return texts;
    for (const auto& [key, usage] : *rows) {
      texts.push_back(absl::StrCat(key.day, "/", key.tenant, "/", key.device,
                                   " ", usage.peak_bytes));
    }
    return texts;
  }

  const TempDirectory directory_;
  std::string aside_;
};

TEST_F(UsageStoreTest, RowsOfAKeyBecomeOneAndStay) {
  const Usage usage{.peak_bytes = 8,
                    .byte_seconds = 1.5,
                    .granted = 1,
                    .refused = 2,
                    .evictions = 3,
                    .evicted_bytes = 4,
                    .restores = 5,
                    .restored_bytes = 6};
  {
    const auto store = OpenOrDie();
    ASSERT_TRUE(store->Add({{{7, "a", "x"}, usage}}).ok());
    Usage smaller = usage;
    smaller.peak_bytes = 3;
    ASSERT_TRUE(store->Add({{{7, "a", "x"}, smaller}}).ok());
  }
  struct stat info {};
  ASSERT_EQ(::stat(Path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const auto rows = OpenOrDie()->List(0, "", std::nullopt, 10);
  ASSERT_TRUE(rows.ok()) << rows.status();
  ASSERT_EQ(rows->size(), 1U);
  EXPECT_EQ(rows->front().first, (UsageKey{7, "a", "x"}));
  EXPECT_EQ(rows->front().second, (Usage{.peak_bytes = 8,
                                         .byte_seconds = 3,
                                         .granted = 2,
                                         .refused = 4,
                                         .evictions = 6,
                                         .evicted_bytes = 8,
                                         .restores = 10,
                                         .restored_bytes = 12}));
}

TEST_F(UsageStoreTest, ListsTheNewestDayFirstPageByPage) {
  const auto store = OpenOrDie();
  UsageRows rows;
  for (const int64_t day : {1, 2}) {
    for (const char* const tenant : {"a", "b"}) {
      for (const char* const device : {"x", "y"})
        rows[{day, tenant, device}] = {.peak_bytes = 1};
    }
  }
  ASSERT_TRUE(store->Add(rows).ok());
  EXPECT_THAT(Listed(store.get(), 0, "", std::nullopt, 3),
              ElementsAre("2/a/x 1", "2/a/y 1", "2/b/x 1"));
  EXPECT_THAT(Listed(store.get(), 0, "", UsageKey{2, "b", "x"}, 3),
              ElementsAre("2/b/y 1", "1/a/x 1", "1/a/y 1"));
  EXPECT_THAT(Listed(store.get(), 0, "", UsageKey{1, "b", "y"}, 3), IsEmpty());
  EXPECT_THAT(Listed(store.get(), 2, "b"), ElementsAre("2/b/x 1", "2/b/y 1"));
}

TEST_F(UsageStoreTest, KeepsTheNewestDaysThatThereAre) {
  const auto store = OpenOrDie({.days = 2});
  for (const int64_t day : {1, 2, 9000})
    ASSERT_TRUE(store->Add({{{day, "a", "x"}, {.granted = 1}}}).ok());
  EXPECT_THAT(Listed(store.get()), ElementsAre("9000/a/x 0", "2/a/x 0"));
}

TEST_F(UsageStoreTest, KeepsNoMoreRowsThanSoManyInWholeDays) {
  const auto store = OpenOrDie({.rows = 4});
  for (const int64_t day : {1, 2, 3}) {
    ASSERT_TRUE(store
                    ->Add({{{day, "a", "x"}, {.granted = 1}},
                           {{day, "b", "x"}, {.granted = 1}}})
                    .ok());
  }
  EXPECT_THAT(Listed(store.get()),
              ElementsAre("3/a/x 0", "3/b/x 0", "2/a/x 0", "2/b/x 0"));
  // Never the newest.
  UsageRows many;
  for (int i = 0; i < 9; ++i)
    many[{4, absl::StrCat("t", i), "x"}] = {.granted = 1};
  ASSERT_TRUE(store->Add(many).ok());
  EXPECT_EQ(Listed(store.get()).size(), many.size());
}

TEST_F(UsageStoreTest, ADamagedFileIsSetAsideAndANewerOneLeftAlone) {
  std::ofstream(Path()) << "no database, and longer than a header of SQLite "
                           "would be; it is text all the same, line by line, "
                           "until there are more than a hundred bytes";
  EXPECT_NE(OpenOrDie(), nullptr);
  EXPECT_THAT(aside_, HasSubstr("usage.db.corrupt-"));
  struct stat info {};
  EXPECT_EQ(::stat(aside_.c_str(), &info), 0);
  {
    auto database = Database::Open(Path());
    ASSERT_TRUE(database.ok() &&
                database->Execute("PRAGMA user_version=2").ok());
  }
  aside_.clear();
  const auto newer = UsageStore::Open(directory_.path(), absl::Now(), &aside_);
  EXPECT_TRUE(absl::IsFailedPrecondition(newer.status())) << newer.status();
  EXPECT_THAT(std::string(newer.status().message()),
              HasSubstr("another version"));
  EXPECT_THAT(aside_, IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
