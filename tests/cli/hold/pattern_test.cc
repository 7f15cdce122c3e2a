#include "client/cli/hold/pattern.h"

#include <algorithm>
#include <vector>

#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

constexpr size_t kBlock = Pattern::kBlockBytes;

std::vector<uint8_t> Contents(const Pattern& pattern, uint64_t offset,
                              size_t bytes) {
  std::vector<uint8_t> contents(bytes);
  pattern.Write(offset, contents.data(), bytes);
  return contents;
}

TEST(PatternTest, ItIsTheSameHoweverItIsCut) {
  const Pattern pattern = Pattern::Seeded(42);
  std::vector<uint8_t> whole = Contents(pattern, 0, 4 * kBlock);
  const std::vector<uint8_t> tail = Contents(pattern, 3 * kBlock, kBlock);
  EXPECT_TRUE(std::equal(tail.begin(), tail.end(), whole.begin() + 3 * kBlock));
}

TEST(PatternTest, BlocksAtOtherOffsetsAndOfOtherSeedsDiffer) {
  const std::vector<uint8_t> block = Contents(Pattern::Seeded(42), 0, kBlock);
  EXPECT_NE(block, Contents(Pattern::Seeded(42), kBlock, kBlock));
  EXPECT_NE(block, Contents(Pattern::Seeded(43), 0, kBlock));
}

TEST(PatternTest, AByteIsEverywhere) {
  EXPECT_EQ(Contents(Pattern::OfByte(0xA5), kBlock, kBlock),
            std::vector<uint8_t>(kBlock, 0xA5));
  EXPECT_EQ(Pattern::OfByte(0xA5).name(), "byte 0xA5");
}

TEST(ChecksumTest, EveryBitAndTheOrderCount) {
  std::vector<uint8_t> contents = Contents(Pattern::Seeded(1), 0, kBlock);
  const auto checksum = [](const std::vector<uint8_t>& bytes) {
    Checksum sum;
    sum.Add(bytes.data(), bytes.size());
    return sum.value();
  };
  const uint64_t before = checksum(contents);
  contents[kBlock / 2] ^= 0x10;
  EXPECT_NE(checksum(contents), before);
  contents[kBlock / 2] ^= 0x10;
  EXPECT_EQ(checksum(contents), before);
  std::swap_ranges(contents.begin(), contents.begin() + 8,
                   contents.begin() + 8);
  EXPECT_NE(checksum(contents), before);
}

TEST(ChecksumTest, ItDoesNotDependOnHowContentsAreFed) {
  const std::vector<uint8_t> contents = Contents(Pattern::Seeded(1), 0, kBlock);
  Checksum whole;
  whole.Add(contents.data(), kBlock);
  Checksum halves;
  halves.Add(contents.data(), kBlock / 2);
  halves.Add(contents.data() + kBlock / 2, kBlock / 2);
  EXPECT_EQ(whole.value(), halves.value());
  EXPECT_EQ(Checksum::Text(255), "00000000000000ff");
}

}  // namespace
}  // namespace gmb::cli
