// The broker's side of a keeper: adoption, a keeper that dies while the broker
// lives, and keepers that lie.
#include "broker/keeping/keeper_client.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

#include "broker/keeping/journal_file.h"
#include "broker/keeping/journal_writer.h"
#include "broker/keeping/remote_keeper.h"
#include "ipc/listener.h"
#include "keeper/wire/frame.h"
#include "tests/keeper/forked.h"
#include "tests/keeper/keeper_fixture.h"

namespace gmb::broker {
namespace {

using keeper::BytesOf;
using keeper::EntryHead;
using keeper::Forked;
using keeper::Frame;
using keeper::Kind;
using keeper::MemoryFile;
using keeper::PidfdOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class KeeperClientTest : public keeper::KeeperTest {
 protected:
  [[nodiscard]] KeeperClientOptions Options() const {
    return {.socket = socket(),
            .timeout = keeper::kPatience,
            .wait_for_last = keeper::kPatience};
  }
  [[nodiscard]] std::unique_ptr<KeeperClient> Connect() const {
    auto client = KeeperClient::Connect(Options());
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  // It has room for 80 fds.
  void StartSmallKeeper() {
    const std::string few = "ulimit -n 480; exec \"$0\" \"$@\"";
    StartAs({"/bin/bash", "-c", few, GMB_KEEPER_PROGRAM, "--socket", socket()},
            "small");
  }
};

Kept Slab(int number) {
  return {.key = absl::StrCat("slab/", number),
          .record = absl::StrCat("record ", number),
          .fds = {Share(MemoryFile(absl::StrCat("bytes ", number)))}};
}

TEST_F(KeeperClientTest, AHundredSlabsAndTheirJournalAreAdopted) {
  StartKeeper();
  Forked old([&](const auto& say) {
    auto client = KeeperClient::Connect(Options());
    if (!client.ok()) return say(std::string(client.status().message()));
    auto journal = JournalFile::Create(256);
    JournalWriter writer(journal->memory(), *journal->Read());
    const Kept file{
        .key = "journal",
        .fds = {Share(base::UniqueFd(::fcntl(journal->fd(), F_DUPFD, 0)))}};
    if (!(*client)->Put(file).ok()) return say("no journal");
    RemoteKeeper slabs(client->get());
    for (int i = 1; i <= 100; ++i) {
      if (!slabs.Put(i, MemoryFile(absl::StrCat("bytes ", i))).ok())
        return say("no slab");
      const auto slot = writer.NewSlot();
      if (!writer.Write(*slot, 1, absl::StrCat("slab ", i)).ok()) return;
      writer.Commit();
    }
    if (!slabs.Remove(50).ok()) return say("not removed");
    say("put");
    while (true) ::pause();
  });
  ASSERT_EQ(old.Line(), "put");
  old.Signal(SIGKILL);
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  const auto all = client->Adopt();
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_THAT(*all, SizeIs(100));
  EXPECT_EQ(all->front().key, "journal");
  auto journal = JournalFile::Adopt(
      base::UniqueFd(::fcntl(all->front().fds[0]->get(), F_DUPFD, 0)));
  ASSERT_TRUE(journal.ok()) << journal.status();
  EXPECT_THAT(journal->Read()->records, SizeIs(100));
  RemoteKeeper slabs(client.get());
  for (size_t i = 1; i < all->size(); ++i)
    ASSERT_TRUE(slabs.Adopt(all->at(i)).ok());
  EXPECT_FALSE(slabs.Adopt(all->at(1)).ok()) << "twice";
  EXPECT_FALSE(slabs.Adopt(all->at(0)).ok()) << "a journal is no slab";
  EXPECT_THAT(slabs.List(), SizeIs(99));
  EXPECT_EQ(slabs.Get(50), nullptr);
  for (const SlabId slab : slabs.List()) {
    EXPECT_EQ(BytesOf(std::get<base::UniqueFd>(*slabs.Get(slab)).get()),
              absl::StrCat("bytes ", slab));
  }
  // From now on they are this broker's.
  EXPECT_TRUE(slabs.Remove(1).ok());
  EXPECT_EQ(Status().entries, 99U);
  EXPECT_TRUE(client->Done().ok());
  EXPECT_EQ(Status().entries, 0U);
}

TEST_F(KeeperClientTest, AKeeperThatDiesIsNoticedAndANewOneIsFilled) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  for (const int i : {1, 2, 3}) ASSERT_TRUE(client->Put(Slab(i)).ok());
  ASSERT_TRUE(client->Remove("slab/2").ok());
  const std::string first_id = client->keeper_id();
  EXPECT_FALSE(client->lost());
  keeper_->Signal(SIGKILL);
  ASSERT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  EXPECT_TRUE(client->lost());
  EXPECT_TRUE(client->Put(Slab(4)).ok()) << "for the next keeper";
  EXPECT_TRUE(absl::IsUnavailable(client->Refill())) << "there is none yet";
  EXPECT_TRUE(client->Remove("slab/3").ok());
  StartKeeper({}, "keeper2");
  const absl::Status refilled = client->Refill();
  ASSERT_TRUE(refilled.ok()) << refilled;
  EXPECT_FALSE(client->lost());
  EXPECT_NE(client->keeper_id(), first_id);
  ASSERT_TRUE(client->Put(Slab(5)).ok());
  EXPECT_EQ(client->entries(), 3U);
  // The keeper has what was not removed.
  EXPECT_EQ(Status().entries, 3U);
}

// Slabs and sessions without their journal would be the end of the next broker.
TEST_F(KeeperClientTest, ASmallKeeperHasTheJournalFirstAndThenSessions) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Put(Slab(i)).ok());
  const auto put_as = [&](const std::string& key) {
    Kept kept = Slab(100);
    kept.key = key;
    return client->Put(kept).ok();
  };
  ASSERT_TRUE(put_as("session/1"));
  ASSERT_TRUE(put_as("journal/1"));
  ASSERT_TRUE(put_as("host"));
  keeper_->Signal(SIGKILL);
  ASSERT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  StartSmallKeeper();
  const absl::Status refilled = client->Refill();
  ASSERT_TRUE(refilled.ok()) << refilled;
  EXPECT_EQ(Status().entries, 80U);
  EXPECT_EQ(client->refused(), 23U);
  for (const char* const key : {"session/1", "journal/1", "host"})
    ASSERT_TRUE(client->Remove(key).ok());
  EXPECT_EQ(Status().entries, 77U) << "they were there";
  EXPECT_EQ(client->refused(), 23U);
}

TEST_F(KeeperClientTest, AKeeperWithoutRoomForTheJournalGetsNothing) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 81; ++i) {
    Kept journal = Slab(i);
    journal.key = absl::StrCat("journal/", i);
    ASSERT_TRUE(client->Put(journal).ok());
  }
  ASSERT_TRUE(client->Put(Slab(1)).ok());
  keeper_->Signal(SIGKILL);
  ASSERT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  StartSmallKeeper();
  const absl::Status refilled = client->Refill();
  EXPECT_TRUE(absl::IsResourceExhausted(refilled)) << refilled;
  EXPECT_TRUE(client->lost());
  EXPECT_EQ(Status().entries, 0U);
}

TEST_F(KeeperClientTest, ANewKeeperWithLessRoomHasWhatItHasRoomFor) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client->Put(Slab(i)).ok());
  keeper_->Signal(SIGKILL);
  ASSERT_EQ(keeper_->AwaitExit(), 128 + SIGKILL);
  StartSmallKeeper();
  const absl::Status refilled = client->Refill();
  EXPECT_TRUE(refilled.ok()) << refilled;
  EXPECT_FALSE(client->lost());
  EXPECT_EQ(Status().entries, 80U);
  EXPECT_EQ(client->refused(), 20U);
  for (int i = 0; i < 100; ++i) {
    const absl::Status removed = client->Remove(absl::StrCat("slab/", i));
    EXPECT_TRUE(removed.ok()) << removed;
  }
  EXPECT_EQ(client->refused(), 0U);
  EXPECT_EQ(Status().entries, 0U);
  EXPECT_FALSE(client->lost());
}

TEST_F(KeeperClientTest, AKeeperThatIsStoppedIsLostInTime) {
  StartKeeper();
  KeeperClientOptions options = Options();
  options.timeout = absl::Milliseconds(100);
  absl::StatusOr<std::unique_ptr<KeeperClient>> client =
      absl::UnknownError("not tried");
  // Until it answers in so short a time, as a loaded machine may not.
  const auto put_for_sure = [&](int number) {
    return component::Await([&] {
      if (!client.ok()) client = KeeperClient::Connect(options);
      if (!client.ok()) return false;
      const absl::Status put = (*client)->Put(Slab(number));
      if (put.ok() || absl::IsAlreadyExists(put)) return true;
      (void)(*client)->Refill();
      return false;
    });
  };
  ASSERT_TRUE(put_for_sure(1));
  keeper_->Signal(SIGSTOP);
  EXPECT_TRUE((*client)->Put(Slab(2)).ok()) << "for the next keeper";
  EXPECT_TRUE((*client)->lost());
  // Nobody waits for it a second time.
  EXPECT_TRUE((*client)->Put(Slab(3)).ok());
  EXPECT_TRUE((*client)->Remove("slab/3").ok());
  keeper_->Signal(SIGCONT);
  // It carries out what it has read, which nobody was told of.
  ASSERT_TRUE(component::Await([&] { return (*client)->Refill().ok(); }));
  EXPECT_EQ(Status().entries, 2U);
  EXPECT_TRUE(put_for_sure(3));
}

TEST_F(KeeperClientTest, ARefusalIsNoLoss) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(client->Put(Slab(1)).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(client->Put(Slab(1))));
  EXPECT_TRUE(absl::IsNotFound(client->Remove("slab/2")));
  Kept odd = Slab(2);
  odd.key = "Slab 2";
  EXPECT_TRUE(absl::IsInvalidArgument(client->Put(odd)));
  odd = Slab(2);
  odd.fds.clear();
  EXPECT_TRUE(absl::IsInvalidArgument(client->Put(odd)));
  // The keeper itself looks whether a peer is a process.
  odd = Slab(2);
  odd.peer = 0;
  EXPECT_TRUE(absl::IsInvalidArgument(client->Put(odd)));
  odd.fds = {Share(PidfdOf(::getpid()))};
  EXPECT_TRUE(client->Put(odd).ok());
  EXPECT_FALSE(client->lost());
  EXPECT_TRUE(absl::IsFailedPrecondition(client->Adopt().status()));
}

TEST_F(KeeperClientTest, ASlabThatTheKeeperRefusedIsCountedUntilItIsRemoved) {
  StartSmallKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  RemoteKeeper slabs(client.get());
  SlabId last = 0;
  while (slabs.not_kept() < 2 && last < 200)
    ASSERT_TRUE(slabs.Put(++last, MemoryFile("bytes")).ok());
  ASSERT_EQ(slabs.not_kept(), 2U);
  EXPECT_TRUE(slabs.Remove(1).ok()) << "one that is kept";
  EXPECT_EQ(slabs.not_kept(), 2U);
  EXPECT_TRUE(slabs.Remove(last).ok());
  EXPECT_EQ(slabs.not_kept(), 1U);
  EXPECT_TRUE(slabs.Remove(last - 1).ok());
  EXPECT_EQ(slabs.not_kept(), 0U);
}

TEST_F(KeeperClientTest, AHandleWithoutAnFdStaysHere) {
  StartKeeper();
  const auto client = Connect();
  ASSERT_NE(client, nullptr);
  RemoteKeeper slabs(client.get());
  ASSERT_TRUE(slabs.Put(1, device::IpcHandle{}).ok());
  ASSERT_TRUE(slabs.Put(2, MemoryFile("two")).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(slabs.Put(2, MemoryFile("other"))));
  EXPECT_THAT(slabs.List(), UnorderedElementsAre(1, 2));
  EXPECT_EQ(Status().entries, 1U);
  EXPECT_TRUE(slabs.Remove(1).ok());
  EXPECT_TRUE(slabs.Remove(2).ok());
  EXPECT_TRUE(absl::IsNotFound(slabs.Remove(2)));
  EXPECT_EQ(Status().entries, 0U);
}

TEST(RemoteKeeperKeys, AreNumbersAndNothingElse) {
  EXPECT_EQ(RemoteKeeper::SlabOf(RemoteKeeper::KeyOf(17)), 17U);
  for (const char* const key :
       {"slab/", "slab/x", "slab/017", "slab/ 17", "slab/-1", "slab/+1",
        "slab/99999999999999999999", "session/17", ""}) {
    EXPECT_EQ(RemoteKeeper::SlabOf(key), std::nullopt) << key;
  }
}

// A keeper that greets as one should, and then sends what a test wants.
class LyingKeeperTest : public KeeperClientTest {
 protected:
  struct Lie {
    uint64_t entries = 0;  // that it says it has
    std::string body;      // of its only page
    std::vector<int> fds;
  };

  // The outcome of an adoption.
  absl::Status AdoptFrom(const Lie& lie) {
    EXPECT_EQ(::mkdir(place().c_str(), 0700), 0);
    liar_ = std::make_unique<Forked>(
        [&](const Forked::Say& say) { BeLiar(lie, say); });
    EXPECT_EQ(liar_->Line(), "listens");
    const auto client = Connect();
    return client == nullptr ? absl::UnknownError("not connected")
                             : client->Adopt().status();
  }
  static std::string PageOf(std::vector<EntryHead> entries) {
    uint64_t order = 0;
    for (EntryHead& entry : entries) entry.order = ++order;
    return Encode(keeper::Page{std::move(entries), false});
  }
  static EntryHead Entry(const std::string& key) {
    return {.key = key, .record = "r", .fds = 1};
  }

  const base::UniqueFd a_ = MemoryFile("a");
  const base::UniqueFd b_ = MemoryFile("b");

 private:
  void BeLiar(const Lie& lie, const Forked::Say& say) {
    auto listener =
        ipc::Listener::Listen(socket(), 0600, ipc::SocketType::kSeqpacket);
    if (!listener.ok()) return say(std::string(listener.status().message()));
    say("listens");
    pollfd entry{.fd = listener->fd(), .events = POLLIN, .revents = 0};
    (void)::poll(&entry, 1, -1);
    ipc::SeqpacketSocket peer(**listener->TryAccept());
    const auto send = [&](Kind kind, uint32_t call, const std::string& body,
                          const std::vector<int>& fds) {
      (void)peer.Send(Encode(Frame{kind, call, body}), fds, false,
                      keeper::kPatience);
    };
    send(Kind::kChallenge, 0, std::string(keeper::kNonceBytes, 'n'), {});
    (void)peer.Receive(keeper::kPatience);
    const keeper::Welcome welcome{1, std::string(keeper::kKeeperIdBytes, 'k'),
                                  lie.entries, 0};
    send(Kind::kWelcome, 1, Encode(welcome), {});
    (void)peer.Receive(keeper::kPatience);
    send(Kind::kPage, 2, lie.body, lie.fds);
    while (true) ::pause();
  }

  std::unique_ptr<Forked> liar_;
};

TEST_F(LyingKeeperTest, WhatIsWellIsAdopted) {
  const absl::Status adopted = AdoptFrom(
      {2, PageOf({Entry("slab/1"), Entry("slab/2")}), {a_.get(), b_.get()}});
  EXPECT_TRUE(adopted.ok()) << adopted;
}

TEST_F(LyingKeeperTest, TooFewFds) {
  const absl::Status adopted =
      AdoptFrom({2, PageOf({Entry("slab/1"), Entry("slab/2")}), {a_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
  EXPECT_THAT(adopted.message(), HasSubstr("fds are missing of slab/2"));
}

TEST_F(LyingKeeperTest, TooManyFds) {
  const absl::Status adopted =
      AdoptFrom({1, PageOf({Entry("slab/1")}), {a_.get(), b_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
}

TEST_F(LyingKeeperTest, TheSameFdTwice) {
  const absl::Status adopted = AdoptFrom(
      {2, PageOf({Entry("slab/1"), Entry("slab/2")}), {a_.get(), a_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
  EXPECT_THAT(adopted.message(), HasSubstr("one and the same fd"));
}

TEST_F(LyingKeeperTest, TheSameNameTwice) {
  const absl::Status adopted = AdoptFrom(
      {2, PageOf({Entry("slab/1"), Entry("slab/1")}), {a_.get(), b_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
  EXPECT_THAT(adopted.message(), HasSubstr("slab/1 comes twice"));
}

TEST_F(LyingKeeperTest, FewerEntriesThanItSaid) {
  const absl::Status adopted =
      AdoptFrom({2, PageOf({Entry("slab/1")}), {a_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
  EXPECT_THAT(adopted.message(), HasSubstr("1 of 2 entries"));
}

TEST_F(LyingKeeperTest, ARecordThatHasChanged) {
  std::string page = PageOf({Entry("slab/1")});
  page[page.find('r', page.find("slab/1") + 6)] ^= 1;
  const absl::Status adopted = AdoptFrom({1, page, {a_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
}

TEST_F(LyingKeeperTest, EntriesOutOfOrder) {
  EntryHead first = Entry("slab/1");
  first.order = 5;
  EntryHead second = Entry("slab/2");
  second.order = 5;
  const absl::Status adopted = AdoptFrom(
      {2, Encode(keeper::Page{{first, second}, false}), {a_.get(), b_.get()}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
}

TEST_F(LyingKeeperTest, APageThatNeverEnds) {
  const absl::Status adopted =
      AdoptFrom({0, Encode(keeper::Page{{}, true}), {}});
  EXPECT_TRUE(absl::IsDataLoss(adopted)) << adopted;
}

}  // namespace
}  // namespace gmb::broker
