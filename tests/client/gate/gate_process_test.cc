// Real processes that are stopped, continued and killed at any moment, and a
// broker that pauses, closes and reopens their gates meanwhile. Nothing that
// happens to one of them matters to the others, or to the broker.
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "tests/client/gate/gate_client_wire.h"
#include "tests/client/gate/gate_fixture.h"

extern char** environ;  // NOLINT(readability-redundant-declaration)

namespace gmb::internal {
namespace {

using ipc::GateState;
using ipc::GateWord;

constexpr size_t kClients = 3;
constexpr int kSteps = 3000;

std::array<uint32_t, 64> Contents(const SharedMemory& shared) {
  std::array<uint32_t, 64> contents;
  for (size_t i = 0; i < contents.size(); ++i) contents[i] = shared.cells[i];
  return contents;
}

// A client process and the broker's side of its gate.
class ClientProcess {
 public:
  explicit ClientProcess(unsigned seed) {
    auto fd = ipc::CreateGatePage();
    EXPECT_TRUE(fd.ok());
    auto page = ipc::GatePage::Map(fd->get());
    EXPECT_TRUE(page.ok());
    page_ = std::make_unique<ipc::GatePage>(*std::move(page));
    const base::UniqueFd memory(::memfd_create("shared", MFD_CLOEXEC));
    EXPECT_EQ(::ftruncate(memory.get(), sizeof(SharedMemory)), 0);
    shared_ = static_cast<SharedMemory*>(::mmap(nullptr, sizeof(SharedMemory),
                                                PROT_READ | PROT_WRITE,
                                                MAP_SHARED, memory.get(), 0));
    Spawn(fd->get(), memory.get(), std::to_string(seed));
  }
  ClientProcess(const ClientProcess&) = delete;
  ClientProcess& operator=(const ClientProcess&) = delete;
  ~ClientProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    // Nothing that a broker does to the gate of a dead process can hang or
    // fail in an unexpected way.
    ipc::PauseGate(cells());
    ipc::WithdrawPause(cells());
    const GateWord word = LookAtGate(cells());
    EXPECT_TRUE(word.consistent());
    EXPECT_EQ(ReopenGate(cells(), word), word.state() == GateState::kClosed);
    EXPECT_EQ(shared_->intrusions, 0u);
    ::munmap(shared_, sizeof(SharedMemory));
  }

  void Stop() {
    ::kill(pid_, SIGSTOP);
    stopped = true;
  }
  void Continue() {
    ::kill(pid_, SIGCONT);
    stopped = false;
  }
  // Takes the memory if the gate allows it, and keeps it until GiveBack.
  bool Take() {
    const GateWord seen = LookAtGate(cells());
    if (!CloseGate(cells(), seen)) return false;
    shared_->taken = 1;
    closed_ = *AfterClose(seen);
    contents_ = Contents(*shared_);
    taken = true;
    return true;
  }
  void GiveBack() {
    EXPECT_EQ(Contents(*shared_), contents_) << "changed while it was taken";
    shared_->taken = 0;
    EXPECT_TRUE(ReopenGate(cells(), closed_));
    taken = false;
  }
  [[nodiscard]] bool AwaitAnotherScope() const {
    const uint64_t before = shared_->scopes;
    return Await([&] { return shared_->scopes > before; });
  }

  [[nodiscard]] ipc::GateCells& cells() const { return page_->cells(); }

  bool stopped = false;
  bool taken = false;

 private:
  void Spawn(int gate, int memory, std::string seed) {
    // Moved away first: the numbers may be taken by one of the two.
    const base::UniqueFd gate_high(::fcntl(gate, F_DUPFD_CLOEXEC, 100));
    const base::UniqueFd memory_high(::fcntl(memory, F_DUPFD_CLOEXEC, 100));
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_adddup2(&actions, gate_high.get(), kGateFd);
    ::posix_spawn_file_actions_adddup2(&actions, memory_high.get(), kSharedFd);
    std::string program = GMB_GATE_CLIENT;
    char* const argv[] = {program.data(), seed.data(), nullptr};
    EXPECT_EQ(
        ::posix_spawn(&pid_, program.c_str(), &actions, nullptr, argv, environ),
        0);
    ::posix_spawn_file_actions_destroy(&actions);
  }

  std::unique_ptr<ipc::GatePage> page_;
  SharedMemory* shared_;
  pid_t pid_ = -1;
  GateWord closed_;
  std::array<uint32_t, 64> contents_{};
};

class GateProcessTest : public ::testing::TestWithParam<unsigned> {
 protected:
  void Replace(size_t i) {
    clients_[i].reset();
    clients_[i] = std::make_unique<ClientProcess>(random_());
  }

  // Does one of the things that a broker may do, or that may befall a client.
  void Befall(ClientProcess& client) {
    switch (random_() % 10) {
      case 0:
        return client.Stop();
      case 1:
      case 2:
        return client.Continue();
      case 3:
        return ipc::PauseGate(client.cells());
      case 4:
        return ipc::WithdrawPause(client.cells());
      case 5:
      case 6:
        if (client.taken) client.GiveBack();
        return;
      default:
        if (!client.taken && client.Take()) ++takes_;
    }
  }

  // A client that runs, and has its memory, gets on, whatever became of the
  // others.
  void OthersGetOn(size_t i) {
    ClientProcess& other = *clients_[(i + 1) % kClients];
    if (other.taken) other.GiveBack();
    ipc::WithdrawPause(other.cells());
    other.Continue();
    EXPECT_TRUE(other.AwaitAnotherScope());
  }

  std::mt19937 random_{GetParam()};
  std::vector<std::unique_ptr<ClientProcess>> clients_{kClients};
  int takes_ = 0;
};

TEST_P(GateProcessTest, StoppedAndKilledProcessesHarmNobodyElse) {
  std::printf("seed %u\n", GetParam());
  for (size_t i = 0; i < kClients; ++i) Replace(i);
  for (const auto& client : clients_) {
    ASSERT_TRUE(client->AwaitAnotherScope());
  }
  int kills = 0;
  for (int step = 0; step < kSteps; ++step) {
    const size_t i = random_() % kClients;
    if (random_() % 40 == 0) {
      ++kills;
      Replace(i);
    } else {
      Befall(*clients_[i]);
    }
    if (step % 8 == 0) OthersGetOn(i);
  }
  std::printf("taken %d times, killed %d\n", takes_, kills);
  EXPECT_GT(takes_, 0);
  for (size_t i = 0; i < kClients; ++i) OthersGetOn(i);
}

INSTANTIATE_TEST_SUITE_P(Seeds, GateProcessTest,
                         ::testing::Values(11u, 12u, 13u));

}  // namespace
}  // namespace gmb::internal
