// `gmb keeper`, without a broker.
#include <signal.h>

#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::keeper {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Command : public KeeperTest {
 protected:
  // Its exit code; its words are in `out_` and `err_`.
  int Gmb(std::vector<std::string> words) {
    words.insert(words.begin(), "keeper");
    words.insert(words.end(), {"--socket", socket()});
    return Run(std::move(words));
  }
  int Doctor() {
    return Run({"doctor", "--output", "json", "--keeper", socket(),
                "--socket-dir", directory_.path() + "/none"});
  }
  int Run(std::vector<std::string> words) {
    words.insert(words.begin(), GMB_PROGRAM);
    component::Program command(directory_.path(), absl::StrCat("gmb", ++runs_),
                               words);
    const int code = command.AwaitExit();
    out_ = command.Out();
    err_ = command.Err();
    return code;
  }

  std::string out_;
  std::string err_;

 private:
  int runs_ = 0;
};

TEST_F(Command, ExitsWithThreeWhereNoKeeperIs) {
  for (const std::string path : {"/nonexist", "/nonexist/k.sock"}) {
    EXPECT_EQ(Run({"keeper", "status", "--socket", path}), 3) << err_;
    EXPECT_THAT(err_, ::testing::Not(HasSubstr("chmod")));
  }
}

TEST_F(Command, ShowsAndDropsWhatADeadBrokerHasLeft) {
  StartKeeper();
  EXPECT_EQ(Gmb({"status"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("broker      none"),
                          HasSubstr("kept        0 entries with 0 fds")));
  Forked broker([&](const auto& say) {
    auto link = KeeperLink::Connect(AsBroker());
    const base::UniqueFd slab = MemoryFile("slab");
    const bool put = link.ok() && Put(&*link, "slab/1", "", {slab.get()}).ok();
    say(put ? "put" : "failed");
    while (true) ::pause();
  });
  ASSERT_EQ(broker.Line(), "put");
  EXPECT_EQ(Gmb({"status"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr(absl::StrCat("broker      pid ",
                                                 broker.pid(), ", connected")),
                          HasSubstr("kept        1 entry with 1 fd ")));
  (void)Doctor();
  EXPECT_THAT(out_, HasSubstr("keeps 1 fd with 4.00 KiB of host memory"));
  EXPECT_EQ(Gmb({"drop", "--yes"}), 1);
  EXPECT_THAT(err_, HasSubstr("stop it first"));
  broker.Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  EXPECT_EQ(Gmb({"status"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("has died"), HasSubstr("gives back  in ")));
  EXPECT_EQ(Gmb({"status", "--output", "json"}), 0) << err_;
  EXPECT_THAT(out_, AllOf(HasSubstr("\"broker\": \"dead\""),
                          HasSubstr("\"entries\": 1")));
  EXPECT_EQ(Doctor(), 1);
  EXPECT_THAT(out_, AllOf(HasSubstr("memory without a broker"),
                          HasSubstr("which has died"),
                          HasSubstr("gmb keeper drop --socket")));
  // Without a terminal nobody can be asked.
  EXPECT_EQ(Gmb({"drop"}), 1);
  EXPECT_THAT(err_, HasSubstr("--yes"));
  EXPECT_EQ(Status().entries, 1U);
  EXPECT_EQ(Gmb({"drop", "--yes"}), 0) << err_;
  EXPECT_EQ(out_, "given back: 1 entry with 1 fd\n");
  EXPECT_EQ(Status().entries, 0U);
}

TEST_F(Command, NamesSessionsOfEndedProcesses) {
  StartKeeper();
  Forked peer([](const auto&) {});
  Forked broker([&](const auto& say) {
    auto link = KeeperLink::Connect(AsBroker());
    const base::UniqueFd slab = MemoryFile(std::string(1 << 20, 'x'));
    const base::UniqueFd page = MemoryFile("gate");
    const base::UniqueFd pidfd = PidfdOf(peer.pid());
    const base::UniqueFd self = PidfdOf(::getppid());
    const bool put =
        link.ok() && Put(&*link, "slab/1", "", {slab.get()}).ok() &&
        Put(&*link, "session/1", "", {page.get(), pidfd.get()}, 1).ok() &&
        Put(&*link, "session/2", "", {self.get()}, 0).ok();
    say(put ? "put" : "failed");
    while (true) ::pause();
  });
  ASSERT_EQ(broker.Line(), "put");
  (void)Doctor();
  EXPECT_THAT(out_, AllOf(HasSubstr("1.00 MiB of host memory"),
                          HasSubstr("2 sessions, for gmbd")));
  peer.Kill();
  // Its broker lives, and does not look.
  (void)Doctor();
  EXPECT_THAT(out_, HasSubstr("sessions of ended processes are kept, 1 of 2"));
  EXPECT_EQ(Gmb({"status"}), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("2, 1 of processes that have ended"));
  broker.Kill();
  ASSERT_TRUE(component::Await(
      [&] { return Status().broker == KeeperStatus::Broker::kDead; }));
  EXPECT_EQ(Doctor(), 1);
  EXPECT_THAT(out_, AllOf(HasSubstr("2 sessions (1 of ended processes)"),
                          HasSubstr("1.00 MiB of host memory")));
}

// The last that was put, and not to write: its broker lives.
TEST_F(Command, LooksAtTheNewestJournalAlone) {
  StartKeeper();
  auto broker = KeeperLink::Connect(AsBroker());
  ASSERT_TRUE(broker.ok()) << broker.status();
  LinkOptions as_command = AsBroker();
  as_command.role = Role::kCommand;
  auto command = KeeperLink::Connect(as_command);
  ASSERT_TRUE(command.ok()) << command.status();
  const auto look = [&] {
    return command->Ask(Kind::kLook, "", {}, Kind::kOk);
  };
  EXPECT_EQ(look().status().code(), absl::StatusCode::kNotFound);
  const base::UniqueFd one = MemoryFile("one");
  const base::UniqueFd two = MemoryFile("two");
  const base::UniqueFd slab = MemoryFile("slab");
  ASSERT_TRUE(Put(&*broker, "journal/1", "", {one.get()}).ok());
  ASSERT_TRUE(Put(&*broker, "journal/2", "", {two.get()}).ok());
  ASSERT_TRUE(Put(&*broker, "slab/1", "", {slab.get()}).ok());
  const auto seen = look();
  ASSERT_TRUE(seen.ok()) << seen.status();
  ASSERT_EQ(seen->fds.size(), 1U);
  EXPECT_EQ(BytesOf(seen->fds[0].get()), "two");
  EXPECT_EQ(::pwrite(seen->fds[0].get(), "x", 1, 0), -1);
  // A pipe could block whoever opens it.
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  ASSERT_TRUE(Put(&*broker, "journal/3", "", {pipe[1]}).ok());
  ::close(pipe[0]);
  ::close(pipe[1]);
  EXPECT_EQ(look().status().code(), absl::StatusCode::kInvalidArgument);
  // A broker fetches.
  EXPECT_FALSE(broker->Ask(Kind::kLook, "", {}, Kind::kOk).ok());
  EXPECT_TRUE(broker->broken());
}

TEST_F(Command, SaysWhenThereIsNoKeeper) {
  EXPECT_EQ(Doctor(), 1);
  EXPECT_THAT(out_, HasSubstr("gmb-keeper --socket"));
  EXPECT_EQ(Gmb({"status"}), 3);
  EXPECT_THAT(err_, HasSubstr("start a keeper with gmb-keeper --socket"));
  StartKeeper();
  keeper_->Signal(SIGKILL);
  EXPECT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  EXPECT_EQ(Gmb({"status"}), 3);
  EXPECT_THAT(err_, HasSubstr("no keeper listens at"));
}

}  // namespace
}  // namespace gmb::keeper
