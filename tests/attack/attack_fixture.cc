// Every attack is measured by this: others are served meanwhile, and nothing is
// left of it.
#include "tests/attack/attack_fixture.h"

#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gmb::attack {
namespace {

using component::kInstrumented;
using ::testing::IsEmpty;

constexpr char kMallory[] = "mallory";
constexpr char kHonest[] = "honest";
constexpr char kOther[] = "other";
constexpr uint64_t kMoreMemory = uint64_t{64} << 20;
// gRPC sees one processor: its executor keeps two threads, its timers a few.
constexpr uint64_t kMoreThreads = 4;
// A broker that fills the memory ends before the machine does.
constexpr uint64_t kMostMemory = uint64_t{4} << 30;

// The words before gmbd's own.
std::vector<std::string> Wrapper(Kernel kernel) {
  switch (kernel) {
    case Kernel::kNewest:
      return {};
    case Kernel::kNoPassRights:
      return {OLD_KERNEL, "--without-passrights"};
    case Kernel::kNoPassRightsNoPidfd:
      return {OLD_KERNEL, "--without-passrights", "--without-peerpidfd"};
  }
  return {};
}

// A number of /proc/PID/status.
uint64_t StatusNumber(pid_t pid, const std::string& name) {
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string word; status >> word;) {
    uint64_t number = 0;
    if (word == name + ":" && status >> number) return number;
  }
  return 0;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const AttackTest::Held& held) {
  return out << "fds " << held.fds << ", threads " << held.threads
             << ", anonymous KiB " << held.anonymous_bytes / 1024;
}

std::ostream& operator<<(std::ostream& out, Kernel kernel) {
  switch (kernel) {
    case Kernel::kNewest:
      return out << "NewestKernel";
    case Kernel::kNoPassRights:
      return out << "NoPassRights";
    case Kernel::kNoPassRightsNoPidfd:
      return out << "NoPassRightsNoPidfd";
  }
  return out;
}

void AttackTest::Start(Kernel kernel, BrokerOptions options,
                       unsigned honest_uid) {
  const std::vector<std::string> wrapper = Wrapper(kernel);
  options.wrapper.insert(options.wrapper.end(), wrapper.begin(), wrapper.end());
  StartBroker(options);
  if (!kInstrumented) {
    const rlimit most{.rlim_cur = kMostMemory, .rlim_max = kMostMemory};
    ::prlimit(broker().program().pid(), RLIMIT_DATA, &most, nullptr);
  }
  for (const std::string tenant : {kMallory, kHonest, kOther})
    MakeTenant(tenant);
  events_ = std::make_unique<EventListener>(SocketDir());
  honest_ = std::make_unique<Program>(
      Directory(), "honest",
      std::vector<std::string>{HONEST_TENANT, TenantDir(kHonest), "90",
                               absl::StrCat(honest_uid)});
  for (int i = 0; i < 3; ++i) ExpectOthersServed();
  ASSERT_FALSE(HasFailure()) << "it does not even serve when nobody attacks";
  (void)Await([&] {  // what the last client left behind has gone
    const Held now = Measure();
    const bool still = now.fds == calm_.fds && now.threads == calm_.threads;
    calm_ = now;
    return still;
  });
}

void AttackTest::TearDown() {
  StopHonest();
  if (events_ != nullptr) {
    EXPECT_THAT(events_->EndedByOthers(kMallory), IsEmpty());
    events_.reset();
  }
  ComponentTest::TearDown();
}

void AttackTest::StopHonest() {
  if (honest_ == nullptr) return;
  honest_->Signal(SIGTERM);
  EXPECT_EQ(honest_->AwaitExit(), 0) << honest_->Err();
  EXPECT_THAT(honest_->Out(), ::testing::HasSubstr("all well"));
  honest_.reset();
}

std::unique_ptr<Program> AttackTest::StartAttacker(
    std::vector<std::string> words, const std::string& directory) {
  words.insert(words.begin(), ATTACKER);
  words.insert(
      words.end(),
      {"--socket-dir", directory.empty() ? TenantDir(kMallory) : directory,
       "--seconds", "600"});
  return std::make_unique<Program>(
      Directory(), absl::StrCat("attacker", ++attackers_), words);
}

void AttackTest::ExpectHarmless(const std::vector<std::string>& words) {
  const auto attacker = StartAttacker(words);
  ServeDuring(*attacker, 1);
  Stop(*attacker);
  ExpectCalmAgain();
}

void AttackTest::ServeDuring(Program& attacker, int seconds) {
  ASSERT_TRUE(attacker.AwaitOut("attacking")) << attacker.Err();
  // A sanitizer finds what it finds in each frame; growth is measured without.
  if (kInstrumented) seconds = 1;
  Held most;
  do {
    const Held now = Measure();
    most.fds = std::max(most.fds, now.fds);
    most.threads = std::max(most.threads, now.threads);
    most.anonymous_bytes = std::max(most.anonymous_bytes, now.anonymous_bytes);
    ExpectOthersServed();
    ASSERT_FALSE(HasFailure()) << "while it was attacked: " << attacker.Out();
    ASSERT_TRUE(attacker.IsRunning()) << attacker.Err();
  } while (
      !absl::StrContains(attacker.Out(), absl::StrCat("second ", seconds)));
  std::cout << "calm: " << calm_ << "; attacked: " << most << "\n";
  EXPECT_LE(most.anonymous_bytes, calm_.anonymous_bytes + kMoreMemory);
}

void AttackTest::Stop(Program& attacker) {
  attacker.Signal(SIGTERM);
  EXPECT_EQ(attacker.AwaitExit(), 0) << attacker.Err();
  std::cout << attacker.Out().substr(attacker.Out().rfind("over"));
}

void AttackTest::ExpectOthersServed() {
  const uint64_t rounds = HonestRounds();
  component::Said status;
  // Sanitizers make the broker many times slower, but not what floods it: it may
  // then be asked again, as the command says.
  (void)Await([&] {
    status = Gmb({"status"});
    return status.exit_code == 0 || !kInstrumented;
  });
  EXPECT_EQ(status.exit_code, 0) << status.err;
  ExpectServed(kOther);
  EXPECT_TRUE(
      Await([&] { return HonestRounds() > rounds || !honest_->IsRunning(); }));
  EXPECT_TRUE(honest_->IsRunning()) << honest_->Err();
}

uint64_t AttackTest::HonestRounds() const {
  const std::string said = honest_->Out();
  const size_t at = said.rfind("round ");
  uint64_t rounds = 0;
  if (at == std::string::npos) return 0;
  (void)absl::SimpleAtoi(said.substr(at + 6, said.find('\n', at) - at - 6),
                         &rounds);
  return rounds;
}

AttackTest::Held AttackTest::Measure() {
  const pid_t pid = broker().program().pid();
  Held held{.fds = broker().OpenFds(), .threads = StatusNumber(pid, "Threads")};
  if (!kInstrumented)
    held.anonymous_bytes = StatusNumber(pid, "RssAnon") * 1024;
  return held;
}

void AttackTest::ExpectCalmAgain() {
  Held now;
  const bool calm = Await([&] {
    now = Measure();
    return now.fds <= calm_.fds &&
           now.threads <= calm_.threads + kMoreThreads &&
           now.anonymous_bytes <= calm_.anonymous_bytes + kMoreMemory;
  });
  EXPECT_TRUE(calm) << "before: " << calm_ << "\nnow:    " << now;
  ExpectOthersServed();
}

void AttackTest::ExpectAllReturned() const {
  v1::PoolStatus pool;
  EXPECT_TRUE(Await([&] {
    pool = Pool();
    return pool.unreturned_bytes() == 0 && pool.missing_bytes() == 0;
  })) << pool.ShortDebugString();
}

void AttackTest::ExpectEndsInOrderDuring(
    const std::vector<std::string>& words) {
  const auto attacker = StartAttacker(words);
  ServeDuring(*attacker, 1);
  StopHonest();
  events_.reset();
  StopBroker();
}

}  // namespace gmb::attack
