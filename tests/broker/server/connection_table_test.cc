// The handle server's peers with a real epoll set: epoll tells of no other.
#include "broker/server/connection_table.h"

#include <gmock/gmock.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <utility>

#include "ipc/pidfd.h"
#include "tests/broker/server/connected_pair.h"
#include "tests/end_with_parent.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

// A process that waits to be killed.
class Process {
 public:
  Process() : parent_(::getpid()), pid_(::fork()) {
    if (pid_ == 0) EndWithParent(parent_);
    while (pid_ == 0) ::pause();
  }
  ~Process() {
    if (pid_ > 0) Kill();
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  std::shared_ptr<const base::UniqueFd> pidfd() const {
    return std::make_shared<const base::UniqueFd>(
        static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  }
  void Kill() {
    ::kill(std::exchange(pid_, -1), SIGKILL);
    ::wait(nullptr);
  }

 private:
  const pid_t parent_;  // this process
  pid_t pid_;
};

class ConnectionTableTest : public ::testing::Test {
 protected:
  static uint64_t SocketTag(uint64_t id) {
    return ipc::EpollTag{ipc::EpollTag::kSocket, id}.Pack();
  }
  static uint64_t PidfdTag(uint64_t id) {
    return ipc::EpollTag{ipc::EpollTag::kPidfd, id}.Pack();
  }
  uint64_t Add(ConnectedPair* pair, const Process* process = nullptr) {
    if (process != nullptr) pair->connection->pidfd = process->pidfd();
    const uint64_t id = table_.Add(std::move(pair->connection));
    EXPECT_TRUE(table_.Watch(id).ok());
    return id;
  }
  static void Say(ConnectedPair* pair) {
    ASSERT_TRUE(pair->peer->TrySend("hello", {}).value_or(false));
  }

  const ipc::EpollSet epoll_ = ipc::EpollSet::Create().value();
  ConnectionTable table_{&epoll_};
};

TEST_F(ConnectionTableTest, AnIdIsNotUsedAgain) {
  ConnectedPair first;
  ConnectedPair second;
  const HandleConnection* const connection = first.connection.get();
  const uint64_t id = table_.Add(std::move(first.connection));
  EXPECT_EQ(table_.Find(id), connection);
  EXPECT_EQ(table_.Take(id).get(), connection);
  const uint64_t next = table_.Add(std::move(second.connection));
  EXPECT_NE(next, id);
  EXPECT_EQ(table_.Find(id), nullptr);
  EXPECT_EQ(table_.Take(id), nullptr);
  EXPECT_EQ(table_.all().size(), 1U);
}

TEST_F(ConnectionTableTest, EpollTellsOfWordsAndOfAHangUpOfThoseWatched) {
  ConnectedPair watched;
  ConnectedPair other;
  const uint64_t id = Add(&watched);
  (void)table_.Add(std::move(other.connection));
  EXPECT_THAT(Told(epoll_), IsEmpty());
  Say(&watched);
  Say(&other);
  EXPECT_THAT(Told(epoll_), ElementsAre(Pair(SocketTag(id), EPOLLIN)));
  ASSERT_TRUE(table_.Find(id)->TryReceive().ok());
  EXPECT_THAT(Told(epoll_), IsEmpty());
  watched.peer.reset();
  const auto told = Told(epoll_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_NE(told.begin()->second & EPOLLRDHUP, 0U);
}

TEST_F(ConnectionTableTest, EpollTellsOfRoomAsLongAsThatIsAskedFor) {
  ConnectedPair pair;
  const uint64_t id = Add(&pair);
  ASSERT_TRUE(table_.WatchRoom(id, true).ok());
  EXPECT_THAT(Told(epoll_), ElementsAre(Pair(SocketTag(id), EPOLLOUT)));
  Say(&pair);
  EXPECT_THAT(Told(epoll_),
              ElementsAre(Pair(SocketTag(id), EPOLLIN | EPOLLOUT)));
  ASSERT_TRUE(table_.WatchRoom(id, false).ok());
  EXPECT_THAT(Told(epoll_), ElementsAre(Pair(SocketTag(id), EPOLLIN)));
}

TEST_F(ConnectionTableTest, OfOneWhoseDeathIsAwaitedEpollTellsThatAlone) {
  Process process;
  ConnectedPair pair;
  const uint64_t id = Add(&pair, &process);
  pair.peer.reset();
  table_.AwaitDeath(id, {});
  EXPECT_TRUE(table_.IsDying(id));
  EXPECT_THAT(Told(epoll_), IsEmpty());
  process.Kill();
  const auto told = Told(epoll_);
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told.begin()->first, PidfdTag(id));
}

// Others have its socket and its pidfd still.
TEST_F(ConnectionTableTest, OfOneThatWasTakenEpollTellsNothing) {
  Process process;
  ConnectedPair pair;
  const std::shared_ptr<ipc::SeqpacketSocket> socket = pair.connection->socket;
  const uint64_t id = Add(&pair, &process);
  const std::shared_ptr<const base::UniqueFd> pidfd = table_.Find(id)->pidfd;
  (void)table_.Take(id);
  Say(&pair);
  process.Kill();
  EXPECT_FALSE(ipc::IsAlive(*pidfd));
  EXPECT_THAT(Told(epoll_), IsEmpty());
}

TEST_F(ConnectionTableTest, ThoseThatOutlivedTheirTimeStayUntilTheyAreTaken) {
  ConnectedPair pairs[3];
  uint64_t ids[3];
  for (int i = 0; i < 3; ++i) ids[i] = Add(&pairs[i]);
  const ConnectionTable::Time now = std::chrono::steady_clock::now();
  EXPECT_EQ(table_.NextDeath(), std::nullopt);
  table_.AwaitDeath(ids[0], now + std::chrono::seconds(2));
  table_.AwaitDeath(ids[1], now + std::chrono::seconds(1));
  EXPECT_FALSE(table_.IsDying(ids[2]));
  EXPECT_EQ(table_.NextDeath(), now + std::chrono::seconds(1));
  EXPECT_THAT(table_.Outlived(now), IsEmpty());
  EXPECT_THAT(table_.Outlived(now + std::chrono::seconds(1)),
              ElementsAre(ids[1]));
  EXPECT_THAT(table_.Outlived(now + std::chrono::seconds(2)),
              ElementsAre(ids[0], ids[1]));
  (void)table_.Take(ids[1]);
  EXPECT_FALSE(table_.IsDying(ids[1]));
  EXPECT_EQ(table_.NextDeath(), now + std::chrono::seconds(2));
  EXPECT_THAT(table_.Outlived(now + std::chrono::seconds(2)),
              ElementsAre(ids[0]));
}

}  // namespace
}  // namespace gmb::broker
