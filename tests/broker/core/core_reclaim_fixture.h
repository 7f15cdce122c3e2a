#ifndef GMB_TESTS_BROKER_CORE_CORE_RECLAIM_FIXTURE_H_
#define GMB_TESTS_BROKER_CORE_CORE_RECLAIM_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_fixture.h"

namespace gmb::broker {

inline MachineOptions ReclaimOptions() {
  MachineOptions options;
  options.planner.unmap_grace = std::chrono::milliseconds(100);
  options.planner.kill_grace = std::chrono::milliseconds(100);
  return options;
}

class CoreReclaimTest : public CoreFixture {
 protected:
  explicit CoreReclaimTest(const MachineOptions& options = ReclaimOptions())
      : CoreFixture(options, 52 * kMiB) {}

  void SetUp() override {
    AddHostPool(52 * kMiB);
    SetTenant("idle", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
    SetTenant("busy", quota::Amount::Bytes(0), quota::Amount::Fraction(1));
  }
  // A session that holds so much, mapped, with its gate on.
  std::shared_ptr<FakePeer> Holder(const std::string& tenant, uint64_t bytes,
                                   PeerIdentity peer = {}) {
    auto holder = std::make_shared<FakePeer>(&core);
    peer.origin = Origin::kTenantDirectory;
    peer.tenant_directory = tenant;
    EXPECT_TRUE(holder->Open(peer).ok());
    sessions.push_back(holder->session);
    EXPECT_TRUE(holder->Answer(holder->SetGate(true)).has_gate_set());
    const v1::BrokerMessage answer =
        holder->Answer(holder->Acquire(bytes, kPatience));
    EXPECT_TRUE(answer.has_grant()) << answer.ShortDebugString();
    lease_ = answer.grant().lease_id();
    holder->Mapped(lease_);
    return holder;
  }
  v1::LeaseInfo Lease(uint64_t id) {
    const auto leases = core.Leases(v1::ListLeasesRequest());
    for (const v1::LeaseInfo& lease : leases->leases()) {
      if (lease.id() == id) return lease;
    }
    return {};
  }
  bool AwaitLease(uint64_t id, v1::LeaseInfo::State state) {
    return AwaitPool(
        [&](const v1::PoolStatus&) { return Lease(id).state() == state; });
  }

  // 40 MiB of `idle`, whose eviction for `busy` is under way.
  struct Taking {
    std::shared_ptr<FakePeer> idle;
    std::shared_ptr<FakePeer> busy;
    uint64_t request;
    v1::Evict evict;
  };
  Taking Take(int wait_seconds) {
    Taking taking;
    taking.idle = Holder("idle", 40 * kMiB);
    taking.idle->Park();
    taking.busy = Connect("busy");
    taking.request = taking.busy->Acquire(40 * kMiB, wait_seconds);
    taking.evict = taking.idle->AwaitEvict();
    EXPECT_EQ(taking.evict.lease_id(), lease_);
    return taking;
  }

  uint64_t lease_ = 0;  // of the last Holder
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_CORE_CORE_RECLAIM_FIXTURE_H_
