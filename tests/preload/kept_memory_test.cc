#include "client/preload/kept_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace gmb::preload {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint64_t kLeaseBytes = uint64_t{4} << 20;
constexpr char kUuid[] = "GPU-1";

// Never destroyed, like the process's own: its thread goes on.
class KeptMemoryTest : public ::testing::Test {
 protected:
  struct World {
    base::Mutex mu;
    base::CondVar changed;
    std::vector<uint64_t> released ABSL_GUARDED_BY(mu);
    std::map<std::string, uint64_t> told ABSL_GUARDED_BY(mu);
    bool serves ABSL_GUARDED_BY(mu) = true;
    Captures captures;
    KeptMemory kept{&captures,
                    {.release =
                         [this](const LeaseRange& lease) {
                           const base::MutexLock lock(&mu);
                           released.push_back(lease.start);
                           changed.NotifyAll();
                         },
                     .serves =
                         [this](const LeaseRange&) {
                           const base::MutexLock lock(&mu);
                           return serves;
                         },
                     .tell =
                         [this](const std::string& uuid, uint64_t bytes) {
                           const base::MutexLock lock(&mu);
                           told[uuid] = bytes;
                           changed.NotifyAll();
                         }}};
  };

  ~KeptMemoryTest() override { world_.kept.Stop(); }

  void Keep(uint64_t start) {
    world_.kept.Keep(0, kUuid, {.start = start, .bytes = kLeaseBytes});
  }
  std::vector<uint64_t> Released() {
    const base::MutexLock lock(&world_.mu);
    return world_.released;
  }
  void AwaitReleased(size_t count) {
    const base::MutexLock lock(&world_.mu);
    while (world_.released.size() < count) world_.changed.Wait(&world_.mu);
  }
  void AwaitTold(uint64_t bytes) {
    const base::MutexLock lock(&world_.mu);
    while (world_.told[kUuid] != bytes) world_.changed.Wait(&world_.mu);
  }

  static World& Make() {
    static std::vector<World*>& all = *new std::vector<World*>;
    return *all.emplace_back(new World);
  }

  World& world_ = Make();
};

TEST_F(KeptMemoryTest, WhatIsKeptLongerIsToldAndGoesBackByItself) {
  Keep(100);
  Keep(200);
  AwaitReleased(2);
  EXPECT_THAT(Released(), ElementsAre(100, 200));
  AwaitTold(0);
  EXPECT_EQ(world_.kept.HeldBytes(0), 0U);
}

TEST_F(KeptMemoryTest, OthersGetAsMuchAsTheyNeed) {
  // A capture keeps the thread from being first.
  world_.captures.AwaitTurn();
  world_.captures.Began(nullptr, nullptr);
  Keep(100);
  Keep(200);
  Keep(300);
  AwaitTold(3 * kLeaseBytes);
  world_.kept.Trim(kUuid, kLeaseBytes + 1);
  EXPECT_THAT(Released(), IsEmpty());  // it would destroy the capture
  world_.captures.Ended(nullptr, nullptr);
  world_.kept.Trim("GPU-2", kLeaseBytes);
  world_.kept.Trim(kUuid, kLeaseBytes + 1);
  AwaitReleased(2);
  EXPECT_THAT(Released(), ::testing::Contains(100));
  EXPECT_THAT(Released(), ::testing::Contains(200));
}

TEST_F(KeptMemoryTest, ALeaseOfASessionThatIsOverServesNobody) {
  world_.captures.AwaitTurn();
  world_.captures.Began(nullptr, nullptr);
  Keep(100);
  Keep(200);
  EXPECT_EQ(world_.kept.Take(0, kLeaseBytes)->start, 200U);
  {
    const base::MutexLock lock(&world_.mu);
    world_.serves = false;
  }
  EXPECT_FALSE(world_.kept.Take(0, kLeaseBytes).has_value());
  EXPECT_THAT(Released(), ElementsAre(100));
  world_.captures.Ended(nullptr, nullptr);
}

// Whether it comes is not known; to let go of it synchronises nothing.
TEST_F(KeptMemoryTest, WhatWasOnlyAskedForGoesBackDuringACapture) {
  world_.captures.AwaitTurn();
  world_.captures.Began(nullptr, nullptr);
  const auto ask = [&] {
    world_.kept.Keep(0, kUuid, {.bytes = kLeaseBytes, .asked = 7});
  };
  Keep(100);
  ask();
  AwaitReleased(1);  // by itself
  ask();
  world_.kept.ReleaseAsked(1);  // another device
  world_.kept.ReleaseAsked(0);
  AwaitReleased(2);
  ask();
  world_.kept.MakeRoom(0, 1);
  AwaitReleased(3);
  EXPECT_THAT(Released(), ElementsAre(0, 0, 0));
  EXPECT_EQ(world_.kept.HeldBytes(0), kLeaseBytes);
  world_.captures.Ended(nullptr, nullptr);
}

TEST_F(KeptMemoryTest, TheProgramsOwnNeedComesFirst) {
  world_.captures.AwaitTurn();
  world_.captures.Began(nullptr, nullptr);
  Keep(100);
  Keep(200);
  world_.captures.Ended(nullptr, nullptr);
  world_.kept.MakeRoom(1, kLeaseBytes);  // another device
  world_.kept.MakeRoom(0, 2 * kLeaseBytes);
  AwaitReleased(2);  // by either
  EXPECT_FALSE(world_.kept.ReleaseAll());
}

TEST_F(KeptMemoryTest, NothingIsTouchedOnceTheProcessExits) {
  world_.captures.AwaitTurn();
  world_.captures.Began(nullptr, nullptr);
  Keep(100);
  world_.kept.Stop();
  world_.captures.Ended(nullptr, nullptr);
  EXPECT_EQ(world_.kept.HeldBytes(0), kLeaseBytes);
  EXPECT_THAT(Released(), IsEmpty());
}

}  // namespace
}  // namespace gmb::preload
