// The arena beside a naive reference that knows of every unit who may write to
// it.
#include "client/heap/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace gmb::internal {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uintptr_t kBase = 0x10000000;

void* StreamNumber(uintptr_t number) {
  return reinterpret_cast<void*>(number);  // NOLINT: a name, not an address
}

class ArenaTest : public ::testing::Test {
 protected:
  Block* Allocate(uint64_t bytes, uintptr_t stream = 0,
                  PoolId pool = kGeneral) {
    return arena_.Allocate(Arena::RoundUp(bytes), StreamNumber(stream), pool);
  }
  void Free(Block* block, uintptr_t stream = 0) {
    arena_.Free(block, StreamNumber(stream));
  }
  void TearDown() override { EXPECT_EQ(arena_.Fault(), ""); }

  Arena arena_;
};

TEST_F(ArenaTest, AnEmptyArenaHasNothing) {
  EXPECT_EQ(Allocate(1), nullptr);
  EXPECT_EQ(arena_.Find(kBase), nullptr);
  EXPECT_FALSE(arena_.Owns(kBase));
  EXPECT_EQ(arena_.shares().LargestFreeBytes(), 0U);
}

TEST_F(ArenaTest, SizesAreRoundedUp) {
  EXPECT_EQ(Arena::RoundUp(1), 512U);
  EXPECT_EQ(Arena::RoundUp(512), 512U);
  EXPECT_EQ(Arena::RoundUp(513), 1024U);
  EXPECT_EQ(Arena::RoundUp(kMiB - 1), kMiB);
  EXPECT_EQ(Arena::RoundUp(kMiB + 1), kMiB + (64 << 10));
  EXPECT_EQ(Arena::RoundUp(Arena::kMostBytes), Arena::kMostBytes);
}

TEST_F(ArenaTest, AWholeChunkIsOneBlock) {
  arena_.AddChunk(1, kBase, 64 * kMiB);
  Block* const block = Allocate(64 * kMiB);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->address, kBase);
  EXPECT_EQ(Allocate(1), nullptr);
  Free(block);
  EXPECT_NE(Allocate(64 * kMiB), nullptr);
}

TEST_F(ArenaTest, TheSameStreamHasItsMemoryAgainAtOnce) {
  arena_.AddChunk(1, kBase, 2 * kMiB);
  Block* const block = Allocate(2 * kMiB, 1);
  Free(block, 1);
  EXPECT_NE(Allocate(2 * kMiB, 1), nullptr);
}

TEST_F(ArenaTest, AnotherStreamHasItWhenAMarkBehindTheFreeIsReached) {
  arena_.AddChunk(1, kBase, 2 * kMiB);
  const uint64_t early = arena_.Mark(StreamNumber(1));
  Free(Allocate(2 * kMiB, 1), 1);
  EXPECT_THAT(arena_.shares().StreamsToMark(StreamNumber(2)),
              ::testing::ElementsAre(StreamNumber(1)));
  EXPECT_THAT(arena_.shares().StreamsToMark(StreamNumber(1)),
              ::testing::IsEmpty());
  const uint64_t late = arena_.Mark(StreamNumber(1));
  EXPECT_THAT(arena_.shares().StreamsToMark(StreamNumber(2)),
              ::testing::IsEmpty());
  arena_.Reached(StreamNumber(1), early);
  EXPECT_EQ(Allocate(2 * kMiB, 2), nullptr);
  arena_.Reached(StreamNumber(1), late);
  EXPECT_NE(Allocate(2 * kMiB, 2), nullptr);
}

TEST_F(ArenaTest, AHeldBlockIsNobodysUntilItIsFreed) {
  arena_.AddChunk(1, kBase, 2 * kMiB);
  Block* const block = Allocate(2 * kMiB, 1);
  arena_.Hold(block);
  EXPECT_EQ(arena_.Find(kBase), nullptr);
  EXPECT_EQ(Allocate(512, 1), nullptr);
  EXPECT_THAT(arena_.TakeEmptyChunks(1), ::testing::IsEmpty());
  Free(block, 1);
  EXPECT_NE(Allocate(512, 1), nullptr);
}

TEST_F(ArenaTest, SmallBlocksGatherAtTheEnd) {
  arena_.AddChunk(1, kBase, 64 * kMiB);
  Block* const small = Allocate(512);
  Block* const large = Allocate(2 * kMiB);
  EXPECT_EQ(small->address, kBase + 64 * kMiB - 512);
  EXPECT_EQ(large->address, kBase);
}

TEST_F(ArenaTest, EmptyChunksGoLargestFirstAndOnlyAsManyAsAreAskedFor) {
  arena_.AddChunk(1, kBase, 2 * kMiB);
  arena_.AddChunk(2, kBase + 1024 * kMiB, 64 * kMiB);
  arena_.AddChunk(3, kBase + 2048 * kMiB, 8 * kMiB);
  Block* const block = Allocate(2 * kMiB);  // in the smallest that fits
  EXPECT_EQ(block->chunk->id, 1U);
  EXPECT_EQ(arena_.sums().empty_bytes, 72 * kMiB);
  EXPECT_THAT(arena_.TakeEmptyChunks(kMiB), ::testing::ElementsAre(2));
  EXPECT_THAT(arena_.TakeEmptyChunks(72 * kMiB), ::testing::ElementsAre(3));
  EXPECT_EQ(arena_.sums().chunk_bytes, 2 * kMiB);
  EXPECT_FALSE(arena_.Owns(kBase + 1024 * kMiB));
}

TEST_F(ArenaTest, APoolIsForItsOwnAndIsEverybodysWhenItIsDissolved) {
  arena_.AddChunk(1, kBase, 4 * kMiB, 7);
  EXPECT_EQ(Allocate(512), nullptr);
  Block* const block = Allocate(2 * kMiB, 1, 7);
  ASSERT_NE(block, nullptr);
  Free(Allocate(kMiB, 2, 7), 2);
  EXPECT_THAT(arena_.TakeEmptyChunks(1), ::testing::IsEmpty());
  EXPECT_EQ(Allocate(512), nullptr);
  arena_.DissolvePool(7);
  EXPECT_EQ(arena_.Fault(), "");
  EXPECT_EQ(Allocate(2 * kMiB, 3), nullptr) << "stream 2 may still write to it";
  EXPECT_THAT(arena_.shares().StreamsToMark(std::nullopt),
              ::testing::ElementsAre(StreamNumber(2)));
  arena_.Reached(StreamNumber(2), arena_.Mark(StreamNumber(2)));
  EXPECT_NE(Allocate(2 * kMiB, 3), nullptr);
  EXPECT_EQ(arena_.Find(block->address), block);
  Free(block, 1);
}

TEST_F(ArenaTest, AStreamIsForgottenWhenNoBlockIsOfIt) {
  arena_.AddChunk(1, kBase, 4 * kMiB);
  const auto known = [&] { return arena_.shares().of_streams().size(); };
  Block* const block = Allocate(2 * kMiB, 1);
  arena_.EndStream(StreamNumber(1), false);
  EXPECT_EQ(known(), 1U) << "a live block was allocated for it";
  arena_.Hold(block);
  arena_.EndStream(StreamNumber(1), false);
  EXPECT_EQ(known(), 1U) << "and is held";
  Free(block, 1);
  arena_.EndStream(StreamNumber(1), false);
  EXPECT_EQ(known(), 1U) << "and is free for it alone";
  arena_.Reached(StreamNumber(1), arena_.Mark(StreamNumber(1)));
  arena_.EndStream(StreamNumber(1), true);
  EXPECT_EQ(known(), 1U) << "a mark is on it";
  arena_.EndStream(StreamNumber(1), false);
  EXPECT_EQ(known(), 0U);
  EXPECT_NE(Allocate(4 * kMiB, 2), nullptr);
}

TEST_F(ArenaTest, ABlockOfADissolvedPoolIsCountedForItsStream) {
  arena_.AddChunk(1, kBase, 4 * kMiB, 7);
  Block* const block = Allocate(2 * kMiB, 1, 7);
  arena_.DissolvePool(7);
  EXPECT_EQ(arena_.Fault(), "");
  arena_.EndStream(StreamNumber(1), false);
  arena_.FreeForAnyone(block);
  arena_.EndStream(StreamNumber(1), false);
  EXPECT_TRUE(arena_.shares().of_streams().empty());
}

// The owner of a unit of 512 bytes, as the rules of gmb/heap.h say it.
struct Unit {
  bool used = false;
  // Those that may still write to it: the stream that freed it, and how many
  // marks it had then.
  bool tainted = false;
  uintptr_t stream = 0;
  uint64_t marks = 0;
};

class Reference {
 public:
  void AddChunk(uintptr_t address, uint64_t bytes) {
    chunks_[address].resize(bytes / kBlockBytes);
  }
  void RemoveChunk(uintptr_t address) { chunks_.erase(address); }

  // "" when the stream may have it.
  std::string Use(uintptr_t address, uint64_t bytes, uintptr_t stream) {
    std::string fault;
    ForEach(address, bytes, [&](Unit& unit) {
      if (unit.used) fault = "it is in use";
      if (unit.tainted && unit.stream != stream)
        fault = "another stream may still write to it";
      unit = {.used = true};
    });
    return fault;
  }
  void Free(uintptr_t address, uint64_t bytes, uintptr_t stream,
            uint64_t marks) {
    ForEach(address, bytes, [&](Unit& unit) {
      unit = {.tainted = true, .stream = stream, .marks = marks};
    });
  }
  void Reached(uintptr_t stream, uint64_t mark) {
    for (auto& [address, units] : chunks_) {
      for (Unit& unit : units) {
        if (unit.tainted && unit.stream == stream && unit.marks < mark)
          unit.tainted = false;
      }
    }
  }
  // The longest run that is free and that the stream, if it is the only one
  // that ever was, could have.
  [[nodiscard]] uint64_t LongestFreeRun() const {
    uint64_t longest = 0;
    for (const auto& [address, units] : chunks_) {
      uint64_t run = 0;
      for (const Unit& unit : units) {
        run = unit.used ? 0 : run + 1;
        longest = std::max(longest, run);
      }
    }
    return longest * kBlockBytes;
  }

 private:
  template <typename Visit>
  void ForEach(uintptr_t address, uint64_t bytes, Visit visit) {
    auto& [start, units] = *std::prev(chunks_.upper_bound(address));
    const uint64_t first = (address - start) / kBlockBytes;
    for (uint64_t i = 0; i < bytes / kBlockBytes; ++i)
      visit(units.at(first + i));
  }
  std::map<uintptr_t, std::vector<Unit>> chunks_;
};

// Random steps, each checked.
class ArenaPropertyTest : public ::testing::TestWithParam<uintptr_t> {
 protected:
  struct Live {
    uintptr_t address;
    uint64_t bytes;
  };
  struct OpenMark {
    uintptr_t stream;
    uint64_t mark;
  };

  uint64_t Random(uint64_t below) { return random_() % below; }
  uintptr_t AnyStream() { return 1 + Random(streams_); }
  uint64_t AnySize() {
    const uint64_t dice = Random(10);
    if (dice < 6) return 1 + Random(16 << 10);
    if (dice < 9) return 1 + Random(kMiB);
    return 1 + Random(3 * kMiB);
  }

  void Grow() {
    const uint64_t bytes = (1 + Random(4)) * 2 * kMiB;
    const uintptr_t address = kBase + ++chunks_ * 64 * kMiB;
    arena_.AddChunk(chunks_, address, bytes);
    reference_.AddChunk(address, bytes);
  }
  void Allocate() {
    const uint64_t bytes = Arena::RoundUp(AnySize());
    const uintptr_t stream = AnyStream();
    const Block* const block = arena_.Allocate(bytes, StreamNumber(stream));
    if (block == nullptr) {
      ExpectNothingFits(bytes, stream);
      if (chunks_ < 40) Grow();
      return;
    }
    EXPECT_EQ(block->bytes, bytes);
    EXPECT_EQ(block->address % kBlockBytes, 0U);
    EXPECT_EQ(arena_.Find(block->address), block);
    EXPECT_EQ(reference_.Use(block->address, bytes, stream), "");
    live_.push_back({block->address, bytes});
  }
  void ExpectNothingFits(uint64_t bytes, uintptr_t stream) {
    if (streams_ == 1) {
      EXPECT_LT(reference_.LongestFreeRun(), bytes);
    }
    for (const auto& [address, chunk] : arena_.chunks()) {
      for (const Block* block = chunk->first; block != nullptr;
           block = block->after) {
        if (block->state != Block::State::kFree) continue;
        if (block->share->anyone ||
            block->share->stream == StreamNumber(stream)) {
          EXPECT_LT(block->bytes, bytes);
        }
      }
    }
  }
  void Free() {
    if (live_.empty()) return;
    std::swap(live_[Random(live_.size())], live_.back());
    const Live gone = live_.back();
    live_.pop_back();
    const uintptr_t stream = AnyStream();
    arena_.Free(arena_.Find(gone.address), StreamNumber(stream));
    EXPECT_EQ(arena_.Find(gone.address), nullptr);
    reference_.Free(gone.address, gone.bytes, stream, marks_[stream]);
  }
  void MarkSome() {
    const uintptr_t stream = AnyStream();
    marks_[stream] = arena_.Mark(StreamNumber(stream));
    open_.push_back({stream, marks_[stream]});
  }
  void ReachOne() {
    if (open_.empty()) return;
    const OpenMark reached = open_.front();
    open_.pop_front();
    arena_.Reached(StreamNumber(reached.stream), reached.mark);
    reference_.Reached(reached.stream, reached.mark);
  }
  void Shrink() {
    std::map<uint64_t, uintptr_t> addresses;
    for (const auto& [address, chunk] : arena_.chunks())
      addresses[chunk->id] = address;
    for (const uint64_t id : arena_.TakeEmptyChunks(1 + Random(4 * kMiB)))
      reference_.RemoveChunk(addresses[id]);
  }

  std::mt19937_64 random_;
  uint64_t streams_ = 1;
  Arena arena_;
  Reference reference_;
  uint64_t chunks_ = 0;
  std::vector<Live> live_;
  std::map<uintptr_t, uint64_t> marks_;
  std::deque<OpenMark> open_;
};

TEST_P(ArenaPropertyTest, RandomStepsNeverShareAUnit) {
  streams_ = GetParam();
  const uint64_t seed = std::random_device()();
  RecordProperty("seed", std::to_string(seed));
  SCOPED_TRACE("seed " + std::to_string(seed));
  random_.seed(seed);
  for (int step = 0; step < 3000 && !HasFailure(); ++step) {
    const uint64_t dice = Random(100);
    // Seasons of growing and of shrinking.
    const uint64_t allocate = step / 500 % 2 == 0 ? 50 : 35;
    if (dice < allocate) {
      Allocate();
    } else if (dice < 85) {
      Free();
    } else if (dice < 90) {
      MarkSome();
    } else if (dice < 97) {
      ReachOne();
    } else {
      Shrink();
    }
    ASSERT_EQ(arena_.Fault(), "") << "step " << step;
  }
  while (!live_.empty()) Free();
  for (uintptr_t stream = 1; stream <= streams_; ++stream) {
    arena_.Reached(StreamNumber(stream), arena_.Mark(StreamNumber(stream)));
  }
  // All is whole again.
  EXPECT_EQ(arena_.Fault(), "");
  EXPECT_EQ(arena_.sums().empty_bytes, arena_.sums().chunk_bytes);
  for (const auto& [address, chunk] : arena_.chunks())
    EXPECT_EQ(chunk->first->bytes, chunk->bytes);
}

INSTANTIATE_TEST_SUITE_P(Streams, ArenaPropertyTest,
                         ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace gmb::internal
