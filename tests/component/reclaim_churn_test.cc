// Tenants that lend and borrow at random, die, stop and come back, under an
// operator who changes everything at random: no byte is lost or seen by
// others, no guarantee is broken, and nothing is left behind.
//
// GMB_CHURN_SEED repeats a run, GMB_CHURN_ROUNDS makes more of them, and
// GMB_CHURN_STEPS longer ones.
#include <signal.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr uint64_t kPoolBytes = 96 * kMiB;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Tenant {
  std::string name;
  uint64_t guarantee_bytes;
  bool mortal;  // its processes are killed at random
  std::unique_ptr<Program> process = nullptr;
  int processes = 0;
  bool killed = false;
};

class ReclaimChurnTest : public ComponentTest {
 protected:
  void Round(uint64_t seed);

 private:
  void StartProcess(Tenant* tenant);
  bool AnyRuns();
  void Operate();
  void Disturb(Tenant* tenant);
  void Reclaim(const Tenant& tenant);
  void ResizeTo(uint64_t bytes);
  void ExpectEnded(Tenant* tenant);

  std::mt19937_64 random_;
  std::vector<Tenant> tenants_;
};

void ReclaimChurnTest::StartProcess(Tenant* tenant) {
  tenant->killed = false;
  const auto tag = static_cast<uint64_t>(tenant - tenants_.data()) + 1;
  const uint64_t steps = FromEnvironment("GMB_CHURN_STEPS", 150);
  tenant->process = std::make_unique<Program>(
      Directory(), absl::StrCat(tenant->name, "-", ++tenant->processes),
      std::vector<std::string>{RECLAIM_TENANT, TenantDir(tenant->name),
                               absl::StrCat(tag), absl::StrCat(random_()),
                               absl::StrCat(steps),
                               absl::StrCat(tenant->guarantee_bytes)});
}

bool ReclaimChurnTest::AnyRuns() {
  bool any = false;
  for (Tenant& tenant : tenants_) any |= tenant.process->IsRunning();
  return any;
}

void ReclaimChurnTest::ExpectEnded(Tenant* tenant) {
  const int code = tenant->process->AwaitExit();
  const bool well = code == 0 || (tenant->killed && code == 128 + SIGKILL);
  EXPECT_TRUE(well) << tenant->name << ": " << code << " "
                    << tenant->process->Err();
  EXPECT_EQ(tenant->process->SanitizerReport(), "");
}

void ReclaimChurnTest::Reclaim(const Tenant& tenant) {
  v1::ReclaimRequest request;
  request.set_tenant(tenant.name);
  request.set_bytes(random_() % 3 * 8 * kMiB);
  request.mutable_wait()->set_nanos(200'000'000);
  const auto done = admin().Reclaim(request, absl::Seconds(20));
  EXPECT_TRUE(done.ok()) << done.status();
}

void ReclaimChurnTest::ResizeTo(uint64_t bytes) {
  v1::ResizePoolRequest request;
  request.mutable_size()->set_bytes(bytes);
  const auto done = admin().ResizePool(request);
  EXPECT_TRUE(done.ok()) << done.status();
}

// A process that is killed, and its successor; or one that stands still.
void ReclaimChurnTest::Disturb(Tenant* tenant) {
  if (tenant->mortal && tenant->processes < 4 && random_() % 4 == 0) {
    tenant->killed = true;
    tenant->process->Signal(SIGKILL);
    ExpectEnded(tenant);
    return StartProcess(tenant);
  }
  tenant->process->Signal(SIGSTOP);
  const uint64_t looks = random_() % 20;
  for (uint64_t i = 0; i < looks; ++i) (void)Status();
  if (random_() % 3 == 0) Reclaim(*tenant);
  tenant->process->Signal(SIGCONT);
}

void ReclaimChurnTest::Operate() {
  Tenant& tenant = tenants_[random_() % tenants_.size()];
  const uint64_t dice = random_() % 100;
  if (dice < 40) {
    Reclaim(tenant);
  } else if (dice < 60) {
    const uint64_t most = kPoolBytes - tenant.guarantee_bytes;
    MakeTenant(tenant.name, tenant.guarantee_bytes,
               tenant.guarantee_bytes + 2 * kMiB + random_() % most);
  } else if (dice < 75) {
    ResizeTo(kPoolBytes - random_() % 8 * 4 * kMiB);
  } else {
    Disturb(&tenant);
  }
}

void ReclaimChurnTest::Round(uint64_t seed) {
  SCOPED_TRACE(absl::StrCat("GMB_CHURN_SEED=", seed));
  std::printf("GMB_CHURN_SEED=%lu\n", seed);
  std::fflush(stdout);
  random_.seed(seed);
  BrokerOptions options;
  options.devices = {absl::StrCat("host:", kPoolBytes >> 20, "MiB")};
  options.flags = {
      absl::StrCat("--host-pool=", random_() % 2 == 0 ? "64MiB" : "256MiB")};
  StartBroker(options);
  tenants_.clear();
  tenants_.push_back({"a", 32 * kMiB, false});
  tenants_.push_back({"b", 24 * kMiB, true});
  tenants_.push_back({"c", 0, false});
  tenants_.push_back({"d", 0, true});
  tenants_.push_back({"e", 8 * kMiB, true});
  for (const Tenant& tenant : tenants_)
    MakeTenant(tenant.name, tenant.guarantee_bytes);
  ASSERT_TRUE(Await([&] { return Status().host_pool().done(); }));
  const Footprint before = Settle();
  for (Tenant& tenant : tenants_) StartProcess(&tenant);
  while (AnyRuns()) {
    Operate();
    Program* const any = tenants_[random_() % tenants_.size()].process.get();
    (void)Await([&] { return !any->IsRunning(); },
                std::chrono::milliseconds(random_() % 30));
  }
  for (Tenant& tenant : tenants_) {
    ExpectEnded(&tenant);
    std::printf("  %s: %s", tenant.name.c_str(), tenant.process->Out().c_str());
    MakeTenant(tenant.name, tenant.guarantee_bytes);
  }
  ResizeTo(kPoolBytes);
  ExpectBackTo(before);
  EXPECT_EQ(Status().host_pool().reserved_bytes(), 0U);
  if (HasFailure()) std::fputs(broker().Log().c_str(), stderr);
  StopBroker();
}

TEST_F(ReclaimChurnTest, NoByteIsLostAndNoGuaranteeBroken) {
  const uint64_t rounds = FromEnvironment("GMB_CHURN_ROUNDS", 1);
  uint64_t seed = FromEnvironment("GMB_CHURN_SEED", std::random_device{}());
  for (uint64_t i = 0; i < rounds && !HasFailure(); ++i) Round(seed++);
}

}  // namespace
}  // namespace gmb::component
