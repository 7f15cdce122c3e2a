#ifndef GMB_TESTS_COMPONENT_FAULTS_FIXTURE_H_
#define GMB_TESTS_COMPONENT_FAULTS_FIXTURE_H_

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "tests/component/faulty_calls.h"
#include "tests/component/restart_fixture.h"

namespace gmb::component {

// Calls that fail: so many go well first, and so many fail then.
struct Fault {
  FaultyCall call = FaultyCall::kNone;
  int error = 0;
  uint64_t first = 0;
  uint64_t count = 1;
};

// A real gmbd with a real keeper, whose calls of the machine fail as told. Two
// tenants lease, are evicted and come back meanwhile; a third one has a lease
// and does nothing, and nothing is to happen to it.
class FaultsFixture : public RestartFixture {
 protected:
  // As ExpectServed writes, which may get the same memory again.
  static constexpr int kWritten = 0x5A;
  static constexpr uint64_t kOwned = 24 * kMiB;
  static constexpr uint64_t kOthers =
      48 * kMiB;  // do not fit beside each other
  static constexpr absl::Duration kLong = absl::Seconds(60);

  void SetUp() override {
    if (GMB_INSTRUMENTED) {
      GTEST_SKIP() << "the library that has calls fail cannot come before a "
                      "sanitizer's";
    }
    OpenPlan();
    RestartFixture::SetUp();
    StartBroker(Options());
    for (const char* const tenant : {"owner", "other", "witness"})
      MakeTenant(tenant);
    ExpectServed("other");
    ExpectServed("owner");
    witness_ = ConnectAs("witness");
    auto kept = witness_->Acquire(4 * kMiB);
    ASSERT_TRUE(kept.ok()) << kept.status();
    kept_ = *std::move(kept);
    std::memset(kept_.data(), kWritten, kept_.size_bytes());
    // A broker that has adopted has an fd more for each slab.
    Restart();
    // The witness alone, whose stream is an fd too.
    ASSERT_TRUE(Await([&] {
      const auto sessions = admin().ListSessions({});
      return sessions.ok() && sessions->sessions_size() == 1 &&
             sessions->sessions(0).streaming();
    }));
    before_ = Settle();
  }
  void TearDown() override {
    Disarm();
    kept_ = Lease();
    witness_.reset();
    RestartFixture::TearDown();
  }

  [[nodiscard]] BrokerOptions Options() const override {
    BrokerOptions options;
    options.devices = {"host:64MiB"};
    options.flags = {"--keeper", KeeperSocket(), "--host-pool=32MiB"};
    options.wrapper = {"env", "LD_PRELOAD=" GMB_FAULTY_CALLS,
                       absl::StrCat(kFaultPlanVariable, "=", PlanFile())};
    return options;
  }

  void Arm(const Fault& fault) {
    plan_->error = fault.error;
    plan_->first = fault.first;
    plan_->count = fault.count;
    plan_->calls = 0;
    plan_->call.store(fault.call, std::memory_order_release);
  }
  // How many such calls there were.
  uint64_t Disarm() {
    if (plan_ == nullptr) return 0;
    plan_->call.store(FaultyCall::kNone, std::memory_order_release);
    return plan_->calls;
  }

  [[nodiscard]] bool DiskWasAsked() const { return plan_->calls > 0; }
  // The broker's, set by so much.
  void SetWallClock(absl::Duration by) {
    plan_->wall_seconds = absl::ToInt64Seconds(by);
  }

  // One life of both tenants, whose calls are given `patience` each. All of
  // them return; who has a session at the end has its contents; the witness has
  // all; and all is as before.
  struct Lived {
    uint64_t calls = 0;    // of the fault's kind
    bool whole = false;    // every call went well
    bool ended = false;    // the broker has, and another one goes on
    std::string log = {};  // of the one that has
  };
  Lived LiveUnder(const Fault& fault, absl::Duration patience) {
    Arm(fault);
    return LiveOnce(patience);
  }
  Lived LiveOnce(absl::Duration patience) {
    Lived lived;
    Owner owner;
    auto life =
        std::async(std::launch::async, [&] { return Live(&owner, patience); });
    while (life.wait_for(std::chrono::milliseconds(2)) !=
           std::future_status::ready) {
      StartAgain(&lived);
    }
    lived.whole = life.get();
    lived.calls = Disarm();
    // One that is about to end answers nobody.
    EXPECT_TRUE(Await([&] {
      StartAgain(&lived);
      return admin().GetStatus(v1::GetStatusRequest()).ok();
    }));
    if (owner.lease.data() != nullptr && owner.client->status().ok()) {
      const auto scope = owner.client->Enter(kLong);
      EXPECT_TRUE(scope.ok()) << scope.status();
      EXPECT_TRUE(scope.ok() && Holds(owner.lease)) << "its contents are lost";
    }
    owner.lease = Lease();
    owner.client.reset();
    ExpectTheWitnessHasAll();
    ExpectBackTo(before_);
    return lived;
  }
  // Serves as before, too.
  void ExpectTheWitnessHasAll() {
    ASSERT_TRUE(witness_->status().ok()) << witness_->status();
    EXPECT_TRUE(Holds(kept_)) << "others' contents are lost";
    auto more = witness_->Acquire(2 * kMiB, WaitFor(kLong));
    ASSERT_TRUE(more.ok()) << more.status();
    EXPECT_TRUE(std::move(*more).Release().ok());
  }

 private:
  struct Owner {
    std::unique_ptr<Client> client;
    Lease lease;
  };

  [[nodiscard]] std::string PlanFile() const { return Directory() + "/plan"; }
  void OpenPlan() {
    const base::UniqueFd file(
        ::open(PlanFile().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(::ftruncate(file.get(), sizeof(FaultPlan)), 0);
    void* const memory =
        ::mmap(nullptr, sizeof(FaultPlan), PROT_READ | PROT_WRITE, MAP_SHARED,
               file.get(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    plan_ = static_cast<FaultPlan*>(memory);
  }

  // A broker that has ended has a successor at once, whose calls go well.
  void StartAgain(Lived* lived) {
    if (broker().program().IsRunning()) return;
    Disarm();
    lived->ended = true;
    lived->log = broker().Log();
    StartBroker(Options());
  }

  [[nodiscard]] absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& tenant, absl::Duration patience) const {
    ClientOptions options = OptionsFor(TenantDir(tenant));
    options.connect_timeout = patience;
    options.answer_timeout = patience;
    return Client::Connect(options);
  }
  static bool Holds(const Lease& lease) {
    const auto* const bytes = static_cast<const unsigned char*>(lease.data());
    return bytes[0] == kWritten &&
           std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
  }

  // Whether all went well.
  bool Live(Owner* owner, absl::Duration patience) {
    auto client = Connect("owner", patience);
    if (!client.ok()) return false;
    owner->client = *std::move(client);
    GateOptions gate;
    gate.park_after = absl::ZeroDuration();
    if (!owner->client->TurnGateOn(gate).ok()) return false;
    auto acquired = owner->client->Acquire(kOwned, WaitFor(patience));
    if (!acquired.ok()) return false;
    owner->lease = *std::move(acquired);
    std::memset(owner->lease.data(), kWritten, owner->lease.size_bytes());
    bool whole = true;
    if (auto other = Connect("other", patience); other.ok()) {
      auto taken = (*other)->Acquire(kOthers, WaitFor(patience));
      whole = taken.ok() && std::move(*taken).Release().ok();
    } else {
      whole = false;
    }
    return owner->client->Enter(patience).ok() && whole;
  }

  FaultPlan* plan_ = nullptr;
  std::unique_ptr<Client> witness_;
  Lease kept_;
  Footprint before_;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_FAULTS_FIXTURE_H_
