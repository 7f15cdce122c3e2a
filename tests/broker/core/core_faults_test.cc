// Each seam of the core fails at its k-th call, and from there on, for each k
// until a life has no more such calls: all is answered, rolled back, and the
// books are equal to the world.
#include <cstdint>
#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/broker/core/fault_world.h"
#include "tests/ipc/open_fds.h"

namespace gmb::broker {
namespace {

using device::CopyFaults;
using device::FaultyAllocator;

// How one seam fails.
struct Fault {
  std::function<void(FaultWorld&, uint64_t k)> arm;
  // So far; 0 where it fails at once or not at all.
  std::function<uint64_t(FaultWorld&)> calls;
  bool loses_device = false;
  // A slab that can't be destroyed is gone: others may not be served.
  bool loses_memory = false;
};

// The outcome of one kind of fault.
struct Swept {
  uint64_t runs = 0;
  uint64_t granted = 0;
  uint64_t restored = 0;
};

void Heal(FaultWorld* world) {
  world->device->Heal();
  world->keeper_faults->Heal();
  world->spare->last = 0;
  for (CopyFaults* faults : {&world->out(), &world->in()}) {
    faults->per_mille = 0;
    for (auto& call : faults->fail_call) call = 0;
  }
}

// Whether the life had a k-th call.
bool LiveOnce(const Fault& fault, uint64_t k, Swept* swept) {
  FaultyKeeper keeper_faults;
  SpareMemory spare;
  FaultWorld world(&keeper_faults, &spare);
  fault.arm(world, k);
  EXPECT_TRUE(world.Live()) << "a call is not answered";
  const bool had_it = k <= fault.calls(world);
  ++swept->runs;
  swept->granted += world.granted_both ? 1 : 0;
  swept->restored += world.restored ? 1 : 0;
  Heal(&world);
  if (!fault.loses_device && !fault.loses_memory) {
    EXPECT_TRUE(world.GoOn()) << "a call is not answered";
  }
  EXPECT_EQ(world.EndAndCompare(), "");
  return had_it;
}

Swept Sweep(const std::string& name, const Fault& fault) {
  constexpr uint64_t kMost = 40;
  Swept swept;
  for (uint64_t k = 1; k <= kMost; ++k) {
    SCOPED_TRACE(absl::StrCat(name, ", call ", k));
    const size_t fds = testing::OpenFds();
    const bool had_it = LiveOnce(fault, k, &swept);
    EXPECT_EQ(testing::OpenFds(), fds);
    if (!had_it || ::testing::Test::HasFailure()) break;
  }
  return swept;
}

Fault DeviceFault(FaultyAllocator::Op op, const absl::Status& status,
                  bool all) {
  return {.arm =
              [=](FaultWorld& world, uint64_t k) {
                if (all) {
                  world.device->FailFrom(op, k, status);
                } else {
                  world.device->FailOnce(op, k, status);
                }
              },
          .calls = [=](FaultWorld& world) { return world.device->calls(op); },
          .loses_device = absl::IsUnavailable(status),
          .loses_memory = op == FaultyAllocator::Op::kDestroy};
}

TEST(CoreFaultsTest, TheDeviceFails) {
  using Op = FaultyAllocator::Op;
  const absl::Status full = absl::ResourceExhaustedError("out of memory");
  const absl::Status broken = absl::InternalError("a driver error");
  const absl::Status lost = absl::UnavailableError("the context is lost");
  const Swept one =
      Sweep("a create", DeviceFault(Op::kCreate, full, /*all=*/false));
  EXPECT_GT(one.runs, 8U);
  // A device that is short of memory for a moment costs nobody anything, where
  // this machine is not too busy.
  EXPECT_GT(one.granted, 0U);
  EXPECT_GT(one.restored, 0U);
  for (const bool all : {false, true}) {
    Sweep("a broken create", DeviceFault(Op::kCreate, broken, all));
    Sweep("a destroy", DeviceFault(Op::kDestroy, broken, all));
  }
  Sweep("all creates", DeviceFault(Op::kCreate, full, /*all=*/true));
  Sweep("lost at a create", DeviceFault(Op::kCreate, lost, /*all=*/true));
  Sweep("lost at a destroy", DeviceFault(Op::kDestroy, lost, /*all=*/true));
}

TEST(CoreFaultsTest, TheFreeFigureFails) {
  using Op = FaultyAllocator::Op;
  const absl::Status broken = absl::InternalError("a driver error");
  const absl::Status lost = absl::UnavailableError("the GPU is lost");
  Sweep("one reading", DeviceFault(Op::kFreeBytes, broken, /*all=*/false));
  Sweep("lost", DeviceFault(Op::kFreeBytes, lost, /*all=*/true));
}

TEST(CoreFaultsTest, CopiesFail) {
  uint64_t runs = 0;
  for (const bool out : {true, false}) {
    const auto side = [out](FaultWorld& world) -> CopyFaults& {
      return out ? world.out() : world.in();
    };
    for (int op = 0; op < CopyFaults::kOps; ++op) {
      const Swept swept =
          Sweep(absl::StrCat(out ? "out, op " : "in, op ", op),
                {.arm = [=](FaultWorld& world,
                            uint64_t k) { side(world).fail_call[op] = k; },
                 .calls = [=](FaultWorld& world) -> uint64_t {
                   return side(world).calls[op];
                 }});
      runs += swept.runs;
    }
    Sweep(out ? "all out" : "all in",
          {.arm = [=](FaultWorld& world,
                      uint64_t) { side(world).per_mille = 1000; },
           .calls = [](FaultWorld&) { return uint64_t{0}; }});
  }
  EXPECT_GT(runs, 2U * 2 * CopyFaults::kOps) << "there are no copies";
}

// Which is not said of the device, whatever the code.
TEST(CoreFaultsTest, TheKeeperRefuses) {
  for (const auto op : {FaultyKeeper::kPut, FaultyKeeper::kRemove}) {
    for (const bool all : {false, true}) {
      Sweep(absl::StrCat(op == FaultyKeeper::kPut ? "put" : "remove",
                         all ? ", all" : ", one"),
            {.arm =
                 [=](FaultWorld& world, uint64_t k) {
                   world.keeper_faults->Fail(op, k, all ? UINT64_MAX : k,
                                             absl::UnavailableError("refused"));
                 },
             .calls =
                 [=](FaultWorld& world) {
                   return world.keeper_faults->calls(op);
                 }});
    }
  }
}

TEST(CoreFaultsTest, TheMachineHasNoMemoryToSpareForTheHostPool) {
  for (const bool all : {false, true}) {
    Sweep("host memory", {.arm =
                              [=](FaultWorld& world, uint64_t k) {
                                world.spare->first = k;
                                world.spare->last = all ? UINT64_MAX : k;
                              },
                          .calls = [](FaultWorld& world) -> uint64_t {
                            return world.spare->calls;
                          }});
  }
}

// No wait, grace or audit goes by it.
TEST(CoreFaultsTest, TheWallClockJumps) {
  for (const int days : {-400, 400}) {
    const Swept swept =
        Sweep(absl::StrCat(days, " days"),
              {.arm =
                   [=](FaultWorld& world, uint64_t) {
                     world.the_clock().SetWallAhead(absl::Hours(24) * days);
                   },
               .calls =
                   [](FaultWorld& world) {
                     return world.restored ? 0 : UINT64_MAX;
                   }});
    EXPECT_EQ(swept.restored, 1U);
  }
}

}  // namespace
}  // namespace gmb::broker
