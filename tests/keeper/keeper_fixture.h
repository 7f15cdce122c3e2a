#ifndef GMB_TESTS_KEEPER_KEEPER_FIXTURE_H_
#define GMB_TESTS_KEEPER_KEEPER_FIXTURE_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/unique_fd.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/messages.h"
#include "tests/component/await.h"
#include "tests/component/program.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::keeper {

inline constexpr absl::Duration kPatience = absl::Seconds(60);

inline base::UniqueFd MemoryFile(const std::string& bytes) {
  base::UniqueFd fd(::memfd_create("kept", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), bytes.data(), bytes.size()),
            static_cast<ssize_t>(bytes.size()));
  return fd;
}

inline std::string BytesOf(int fd) {
  std::string bytes(static_cast<size_t>(::lseek(fd, 0, SEEK_END)), '\0');
  EXPECT_EQ(::pread(fd, bytes.data(), bytes.size(), 0),
            static_cast<ssize_t>(bytes.size()));
  return bytes;
}

inline base::UniqueFd PidfdOf(pid_t pid) {
  return base::UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
}

inline absl::Status Put(KeeperLink* link, const std::string& key,
                        const std::string& record, const std::vector<int>& fds,
                        std::optional<uint8_t> peer = std::nullopt) {
  const EntryHead head{.key = key,
                       .record = record,
                       .fds = static_cast<uint8_t>(fds.size()),
                       .peer = peer};
  return link->Ask(Kind::kPut, Encode(head), fds, Kind::kOk).status();
}

inline absl::Status Remove(KeeperLink* link, const std::string& key) {
  return link->Ask(Kind::kRemove, EncodeKey(key), {}, Kind::kOk).status();
}

struct Fetched {
  EntryHead head;
  std::vector<base::UniqueFd> fds;
};

// All pages, or the first error.
inline absl::StatusOr<std::vector<Fetched>> FetchAll(KeeperLink* link) {
  std::vector<Fetched> all;
  bool more = true;
  while (more) {
    const uint64_t after = all.empty() ? 0 : all.back().head.order;
    auto answer = link->Ask(Kind::kFetch, EncodeAfter(after), {}, Kind::kPage);
    if (!answer.ok()) return answer.status();
    auto page = DecodePage(answer->body);
    if (!page.ok()) return page.status();
    more = page->more;
    size_t next = 0;
    for (EntryHead& head : page->entries) {
      Fetched fetched{std::move(head), {}};
      for (int i = 0; i < fetched.head.fds; ++i)
        fetched.fds.push_back(std::move(answer->fds.at(next++)));
      all.push_back(std::move(fetched));
    }
    EXPECT_EQ(next, answer->fds.size());
  }
  return all;
}

// A real gmb-keeper in a directory of its own.
class KeeperTest : public ::testing::Test {
 protected:
  void StartKeeper(std::vector<std::string> options = {},
                   const std::string& name = "keeper") {
    std::vector<std::string> argv = {GMB_KEEPER_PROGRAM, "--socket", socket()};
    argv.insert(argv.end(), options.begin(), options.end());
    StartAs(argv, name);
  }
  void StartAs(const std::vector<std::string>& argv,
               const std::string& name = "keeper") {
    keeper_ =
        std::make_unique<component::Program>(directory_.path(), name, argv);
    ASSERT_TRUE(keeper_->AwaitErr("listens")) << keeper_->Err();
  }

  void TearDown() override {
    if (keeper_ == nullptr) return;
    EXPECT_EQ(keeper_->SanitizerReport(), "");
  }

  [[nodiscard]] std::string place() const { return directory_.File("place"); }
  [[nodiscard]] std::string socket() const { return place() + "/keeper.sock"; }
  [[nodiscard]] LinkOptions AsBroker(
      absl::Duration wait = absl::ZeroDuration()) const {
    return {.socket = socket(),
            .role = Role::kBroker,
            .timeout = kPatience,
            .wait_for_last = wait};
  }
  [[nodiscard]] KeeperStatus Status() const {
    LinkOptions options = AsBroker();
    options.role = Role::kCommand;
    auto link = KeeperLink::Connect(options);
    EXPECT_TRUE(link.ok()) << link.status();
    if (!link.ok()) return {};
    auto answer = link->Ask(Kind::kStatus, "", {}, Kind::kStatusIs);
    EXPECT_TRUE(answer.ok()) << answer.status();
    auto status = DecodeStatus(answer.ok() ? answer->body : "");
    EXPECT_TRUE(status.ok()) << status.status();
    return status.ok() ? *status : KeeperStatus();
  }

  testing::TemporaryDirectory directory_;
  std::unique_ptr<component::Program> keeper_;
};

}  // namespace gmb::keeper

#endif  // GMB_TESTS_KEEPER_KEEPER_FIXTURE_H_
