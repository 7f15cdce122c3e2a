// `gmb hold`: contents that can be made again, to be compared.
#include "client/cli/hold/pattern.h"

#include <array>
#include <bit>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace gmb::cli {
namespace {

constexpr size_t kStartBytes = 8;
constexpr size_t kStarts = 4096;

// SplitMix64: a permutation that spreads every bit of its input.
uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

}  // namespace

Pattern Pattern::Seeded(uint64_t seed) {
  Pattern pattern;
  pattern.seeded_ = true;
  pattern.seed_ = seed;
  // Blocks start at different places of one stretch of noise: memcpy is as
  // fast as it gets, and no two neighbours are alike.
  pattern.noise_.resize(kBlockBytes + kStarts * kStartBytes);
  for (size_t i = 0; i < pattern.noise_.size(); i += sizeof(uint64_t)) {
    const uint64_t word = Mix(seed ^ Mix(i));
    std::memcpy(&pattern.noise_[i], &word, sizeof(word));
  }
  return pattern;
}

Pattern Pattern::OfByte(uint8_t value) {
  Pattern pattern;
  pattern.seed_ = value;
  return pattern;
}

void Pattern::Write(uint64_t offset, uint8_t* to, size_t bytes) const {
  if (!seeded_) {
    std::memset(to, static_cast<int>(seed_), bytes);
    return;
  }
  for (size_t done = 0; done < bytes; done += kBlockBytes) {
    const uint64_t here = offset + done;
    const size_t start = Mix(seed_ + here) % kStarts * kStartBytes;
    std::memcpy(to + done, &noise_[start], kBlockBytes);
    const std::array<uint64_t, 2> stamp = {seed_, here};
    std::memcpy(to + done, stamp.data(), sizeof(stamp));
  }
}

std::string Pattern::name() const {
  return seeded_ ? absl::StrCat("pattern of seed ", seed_)
                 : absl::StrFormat("byte 0x%02X", seed_);
}

void Checksum::Add(const uint8_t* data, size_t bytes) {
  uint64_t state = state_;
  for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, data + i, sizeof(word));
    state = (std::rotl(state, 5) ^ word) * 0x9FB21C651E98DF25;
  }
  state_ = state;
}

uint64_t Checksum::value() const { return Mix(state_); }

std::string Checksum::Text(uint64_t value) {
  return absl::StrFormat("%016x", value);
}

}  // namespace gmb::cli
