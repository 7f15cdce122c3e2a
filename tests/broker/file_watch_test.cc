#include "broker/daemon/file_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>

#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

class FileWatchTest : public testing::Test {
 protected:
  std::unique_ptr<FileWatch> Watch(const std::set<std::string>& files) {
    auto watch = FileWatch::Start(files, [this] {
      base::MutexLock lock(&mu_);
      ++changes_;
      changed_.NotifyAll();
    });
    EXPECT_TRUE(watch.ok()) << watch.status();
    return watch.ok() ? *std::move(watch) : nullptr;
  }
  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  // Whether so many have come, within 20 s.
  bool AwaitChanges(int changes) {
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(20);
    base::MutexLock lock(&mu_);
    while (changes_ < changes) {
      if (!changed_.WaitUntil(&mu_, end)) return changes_ >= changes;
    }
    return true;
  }
  int changes() {
    base::MutexLock lock(&mu_);
    return changes_;
  }

  const TempDirectory directory_;
  base::Mutex mu_;
  base::CondVar changed_;
  int changes_ ABSL_GUARDED_BY(mu_) = 0;
};

TEST_F(FileWatchTest, AFileThatIsWrittenIsNoticed) {
  Write("gmb.yaml", "1");
  const auto watch = Watch({directory_ / "gmb.yaml"});
  Write("gmb.yaml", "22");
  EXPECT_TRUE(AwaitChanges(1));
}

TEST_F(FileWatchTest, AFileThatIsPutInItsPlaceIsNoticed) {
  Write("gmb.yaml", "1");
  const auto watch = Watch({directory_ / "gmb.yaml"});
  Write("new", "1");
  std::filesystem::rename(directory_ / "new", directory_ / "gmb.yaml");
  EXPECT_TRUE(AwaitChanges(1));
}

// gmb.yaml -> ..data/gmb.yaml, ..data -> ..1: the kubelet renames a new ..data
// over the old one.
TEST_F(FileWatchTest, ALinkThatIsSwappedIsNoticed) {
  for (const std::string version : {"..1", "..2"}) {
    std::filesystem::create_directory(directory_ / version);
    Write(version + "/gmb.yaml", version);
  }
  ASSERT_EQ(::symlink("..1", (directory_ / "..data").c_str()), 0);
  ASSERT_EQ(::symlink("..data/gmb.yaml", (directory_ / "gmb.yaml").c_str()), 0);
  const auto watch = Watch({directory_ / "gmb.yaml"});
  ASSERT_EQ(::symlink("..2", (directory_ / "..data_tmp").c_str()), 0);
  std::filesystem::rename(directory_ / "..data_tmp", directory_ / "..data");
  EXPECT_TRUE(AwaitChanges(1));
}

TEST_F(FileWatchTest, OtherFilesInTheFolderAreNotAndOneThatIsGoneIsNot) {
  Write("gmb.yaml", "1");
  Write("a.token", "1");
  const auto watch = Watch({directory_ / "gmb.yaml", directory_ / "a.token"});
  Write("other", "1");
  std::filesystem::remove(directory_ / "gmb.yaml");
  Write("a.token", "22");
  ASSERT_TRUE(AwaitChanges(1));
  Write("gmb.yaml", "333");
  ASSERT_TRUE(AwaitChanges(2));
  EXPECT_EQ(changes(), 2);
}

TEST_F(FileWatchTest, AFileThatIsBeingWrittenWaitsUntilItIsClosed) {
  Write("gmb.yaml", "1");
  Write("a.token", "1");
  const auto watch = Watch({directory_ / "gmb.yaml", directory_ / "a.token"});
  std::ofstream half(directory_ / "gmb.yaml");
  half << "22" << std::flush;
  Write("a.token", "22");
  ASSERT_TRUE(AwaitChanges(1));
  half.close();
  EXPECT_TRUE(AwaitChanges(2));
}

TEST_F(FileWatchTest, FilesCanBeAddedAndLeftOut) {
  std::filesystem::create_directory(directory_ / "secrets");
  Write("gmb.yaml", "1");
  Write("secrets/a", "1");
  const auto watch = Watch({directory_ / "gmb.yaml"});
  ASSERT_TRUE(watch->Watch({directory_ / "secrets/a"}).ok());
  Write("gmb.yaml", "22");
  Write("secrets/a", "22");
  ASSERT_TRUE(AwaitChanges(1));
  Write("secrets/a", "333");
  ASSERT_TRUE(AwaitChanges(2));
  EXPECT_EQ(changes(), 2);
}

TEST_F(FileWatchTest, AFolderThatIsNotThereIsAnError) {
  EXPECT_FALSE(FileWatch::Start({directory_ / "no/gmb.yaml"}, [] {}).ok());
}

}  // namespace
}  // namespace gmb::broker
