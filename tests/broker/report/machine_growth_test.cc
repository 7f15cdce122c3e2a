// The machine's tables grow piece by piece: no turn moves all of one at once,
// as a hash table does that becomes larger.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <new>
#include <string>

#include "broker/hostpool/host_books.h"
#include "gtest/gtest.h"
#include "tests/broker/report/large_machine.h"

namespace {

// The largest piece of memory that was asked for while it was watched.
bool watching = false;
size_t largest = 0;

}  // namespace

// Not inlined: seen from outside, what is new'd is deleted.
[[gnu::noinline]] void* operator new(size_t bytes) {
  if (watching) largest = std::max(largest, bytes);
  if (void* const memory = std::malloc(std::max<size_t>(bytes, 1)))
    return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept {
  std::free(memory);
}
[[gnu::noinline]] void operator delete(void* memory,
                                       size_t /*bytes*/) noexcept {
  std::free(memory);
}

namespace gmb::broker {
namespace {

constexpr uint64_t kLeases = 20'000;
constexpr uint64_t kWaiting = 10'000;
// A table of so many leases would be many times as large.
constexpr size_t kMost = 64 << 10;

TEST(MachineGrowthTest, NoTurnMovesAllLeasesOrRequests) {
  LargeMachine machine(kLeases * LargeMachine::kGranule);
  machine.SetTenant("many");
  const uint64_t session = machine.Connect("many");
  machine.on_turn = [](bool begins) { watching = begins; };
  for (uint64_t i = 0; i < kLeases; ++i) machine.Acquire(session);
  EXPECT_LE(largest, kMost) << "by acquiring";
  largest = 0;
  for (uint64_t i = 0; i < kWaiting; ++i) machine.Acquire(session);
  ASSERT_EQ(machine.state().engine->waiting(), kWaiting);
  EXPECT_LE(largest, kMost) << "by waiting";
  largest = 0;
  // Each serves one that waits.
  for (uint64_t i = 1; i <= kWaiting; ++i) machine.Release(session, i);
  ASSERT_EQ(machine.state().engine->waiting(), 0u);
  EXPECT_LE(largest, kMost) << "by releasing";
}

TEST(MachineGrowthTest, NoReservationMovesAllOthers) {
  HostBooks books(kLeases);
  largest = 0;
  watching = true;
  for (uint64_t i = 1; i <= kLeases; ++i)
    (void)books.Reserve(quota::TenantId{1}, quota::LeaseId{i}, 1);
  watching = false;
  EXPECT_EQ(books.unreserved_bytes(), 0u);
  EXPECT_LE(largest, kMost);
}

}  // namespace
}  // namespace gmb::broker
