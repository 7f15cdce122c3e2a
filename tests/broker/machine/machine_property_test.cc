// Random runs of the machine: whatever clients, devices and operators do, the
// books add up, contents are where they should be, and nobody is forgotten.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>

#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_interpreter.h"
#include "tests/sanitized.h"

namespace gmb::broker {
namespace {

constexpr uint64_t kFirstSeed = 1;
// One seed may well kill nobody; so many together do some of everything.
constexpr uint64_t kSeedsThatDoEverything = 10;

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

TEST(MachinePropertyTest, WhateverHappensNothingIsLostOrForgotten) {
  const uint64_t seeds =
      FromEnvironment("GMB_MACHINE_SEEDS", FewerIfSanitized(12));
  const uint64_t first = FromEnvironment("GMB_MACHINE_FIRST_SEED", kFirstSeed);
  const uint64_t bytes = FromEnvironment("GMB_MACHINE_BYTES", 12000);
  MachineRun all;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const MachineRun run = InterpretMachine(seed, ProgramOf(seed, bytes));
    if (!run.problem.empty()) {
      for (const std::string& line : run.last_lines) std::cerr << line << "\n";
    }
    ASSERT_EQ(run.problem, "") << "seed " << seed << ", step " << run.steps;
    all.steps += run.steps;
    all.granted += run.granted;
    all.attached += run.attached;
    all.evicted += run.evicted;
    all.restored += run.restored;
    all.killed += run.killed;
    all.read += run.read;
    for (const auto& [kind, count] : run.events_of_kind)
      all.events_of_kind[kind] += count;
  }
  std::cout << "seeds " << first << " to " << first + seeds - 1 << ": "
            << all.steps << " steps, " << all.granted << " granted, "
            << all.attached << " attached, " << all.evicted << " evicted, "
            << all.restored << " restored, " << all.killed << " killed, "
            << all.read << " slabs read\n";
  for (const auto& [kind, count] : all.events_of_kind)
    std::cout << "events: " << count << " " << kind << "\n";
  if (seeds < kSeedsThatDoEverything) return;
  EXPECT_GT(all.granted, seeds * 20);
  EXPECT_GT(all.attached, 0u);
  EXPECT_GT(all.evicted, seeds * 5);
  EXPECT_GT(all.restored, seeds * 5);
  EXPECT_GT(all.killed, 0u);
  EXPECT_GT(all.read, seeds * 50);
}

// It may die in any turn: before its records change, before anything of it is
// begun, or after.
TEST(MachinePropertyTest, AnotherBrokerGoesOnWhereThisOneDied) {
  const uint64_t seeds =
      FromEnvironment("GMB_MACHINE_SEEDS", FewerIfSanitized(12));
  const uint64_t first = FromEnvironment("GMB_MACHINE_FIRST_SEED", kFirstSeed);
  const uint64_t bytes = FromEnvironment("GMB_MACHINE_BYTES", 12000);
  const uint64_t one_in = FromEnvironment("GMB_MACHINE_RESTARTS", 60);
  MachineRun all;
  for (uint64_t seed = first; seed < first + seeds; ++seed) {
    const MachineRun run =
        InterpretMachine(seed, ProgramOf(seed, bytes), one_in);
    if (!run.problem.empty()) {
      for (const std::string& line : run.last_lines) std::cerr << line << "\n";
    }
    ASSERT_EQ(run.problem, "") << "seed " << seed << ", step " << run.steps;
    all.restarts += run.restarts;
    all.adopted += run.adopted;
    all.restored += run.restored;
    all.read += run.read;
  }
  std::cout << "seeds " << first << " to " << first + seeds - 1 << ": "
            << all.restarts << " restarts, " << all.adopted
            << " leases adopted, " << all.restored << " restored, " << all.read
            << " slabs read\n";
  EXPECT_GT(all.restarts, seeds * 10);
  EXPECT_GT(all.adopted, seeds * 20);
  EXPECT_GT(all.read, seeds * 20);
}

TEST(MachinePropertyTest, TheSameEventsGiveTheSameEffects) {
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<uint8_t> program = ProgramOf(seed, 3000);
    EXPECT_EQ(InterpretMachine(seed, program).trace_sum,
              InterpretMachine(seed, program).trace_sum)
        << "seed " << seed;
  }
}

// Each input at which machine_fuzz once stopped.
TEST(MachinePropertyTest, WhatTheFuzzerFoundStaysMended) {
  int inputs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(
           GMB_SOURCE_DIR "/tests/broker/machine/found")) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::vector<uint8_t> bytes(std::istreambuf_iterator<char>(file), {});
    ASSERT_FALSE(bytes.empty()) << entry.path();
    const MachineRun run =
        InterpretMachine(bytes.front(), absl::MakeConstSpan(bytes).subspan(1));
    EXPECT_EQ(run.problem, "") << entry.path() << ", step " << run.steps;
    ++inputs;
  }
  EXPECT_GT(inputs, 0);
}

}  // namespace
}  // namespace gmb::broker
