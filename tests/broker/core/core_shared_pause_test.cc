// Shared leases and pauses: who is held back by others' pause, and until when.
#include <chrono>
#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "ipc/gate_control.h"
#include "tests/broker/core/core_shared_fixture.h"

namespace gmb::broker {
namespace {

using quota::Amount;

class CoreSharedPauseTest : public CoreSharedTest {
 protected:
  // Pauses last until the test ends them.
  void SetUp() override {
    CoreSharedTest::SetUp();
    for (const std::string tenant : {"idle", "busy"}) {
      TenantPolicy policy;
      policy.name = tenant;
      policy.quota = {Amount::Bytes(0), Amount::Fraction(1), 1};
      policy.reclaim.pause_grace = std::chrono::minutes(30);
      ASSERT_TRUE(core.SetTenant(policy).ok());
    }
  }
  // 20 MiB that the writer has on the device, in a scope. The reader's gate is
  // closed, and it has not mapped them again.
  BothAway ReaderAway() {
    BothAway away = Away(40 * kMiB);
    BringBack(away.writer.get(), away.taken);
    EnterScope(away.writer.get(), 4);
    clock.Advance(std::chrono::minutes(1));  // it is young no longer
    return away;
  }
  // The writer is paused for `owner`; the reader asks to be let in meanwhile.
  struct HeldBack {
    std::shared_ptr<FakePeer> owner;
    uint64_t request = 0;  // of `owner`
    uint64_t restore = 0;  // of the reader
  };
  HeldBack HoldBack(const BothAway& away, uint64_t bytes) {
    SetTenant("owner", Amount::Bytes(bytes), Amount::Fraction(1));
    HeldBack held{.owner = Connect("owner")};
    held.request = held.owner->Acquire(bytes, kPatience);
    EXPECT_TRUE(
        away.writer
            ->Await([](const v1::BrokerMessage& m) { return m.has_pausing(); })
            .has_pausing());
    held.restore = away.reader->Restore(kPatience);
    EXPECT_FALSE(IsAskedToMap(away.reader.get()));
    return held;
  }
};

TEST_F(CoreSharedPauseTest, WhoWasHeldBackComesInWhenThePausedOneEnds) {
  const BothAway away = ReaderAway();
  ASSERT_TRUE(away.writer->Answer(away.writer->Acquire(14 * kMiB)).has_grant());
  // 96 MiB are free. The shared lease needs no copy, so that it is chosen.
  const HeldBack held = HoldBack(away, 30 * kMiB);
  // The bytes that the writer had for itself are enough.
  core.CloseSession(away.writer->session, "killed");
  EXPECT_TRUE(held.owner->Answer(held.request).has_grant());
  Map(away.reader.get());
  EXPECT_TRUE(away.reader->Answer(held.restore).has_restored());
}

TEST_F(CoreSharedPauseTest, WhoWasHeldBackComesInWhenThePausedGateIsTurnedOff) {
  const BothAway away = ReaderAway();
  const auto busy = Holder("busy", 14 * kMiB);
  EnterScope(busy.get());
  // 96 MiB are free; `idle` has borrowed more.
  const HeldBack held = HoldBack(away, 20 * kMiB);
  EXPECT_TRUE(away.writer->Answer(away.writer->SetGate(false)).has_gate_set());
  Map(away.reader.get());
  EXPECT_TRUE(away.reader->Answer(held.restore).has_restored());
}

}  // namespace
}  // namespace gmb::broker
