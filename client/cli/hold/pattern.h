#ifndef GMB_CLIENT_CLI_HOLD_PATTERN_H_
#define GMB_CLIENT_CLI_HOLD_PATTERN_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gmb::cli {

// Contents that can be made again from a seed and an offset, so that memory
// can be checked without a copy of it. Every block carries its own offset: a
// slab that is mapped at the wrong place is found out. Immutable.
class Pattern {
 public:
  static constexpr size_t kBlockBytes = size_t{64} * 1024;

  [[nodiscard]] static Pattern Seeded(uint64_t seed);
  // Every byte the same.
  [[nodiscard]] static Pattern OfByte(uint8_t value);

  // The contents that belong at [offset, offset + bytes); both are multiples of
  // kBlockBytes.
  void Write(uint64_t offset, uint8_t* to, size_t bytes) const;

  // "pattern of seed 42", "byte 0xA5".
  [[nodiscard]] std::string name() const;

 private:
  Pattern() = default;

  bool seeded_ = false;
  uint64_t seed_ = 0;  // or the byte
  std::vector<uint8_t> noise_;
};

// A checksum of contents, fed in order. Any multiple of 8 bytes at a time.
class Checksum {
 public:
  void Add(const uint8_t* data, size_t bytes);
  [[nodiscard]] uint64_t value() const;
  // 16 hexadecimal digits.
  [[nodiscard]] static std::string Text(uint64_t value);

 private:
  uint64_t state_ = 0x9E3779B97F4A7C15;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_HOLD_PATTERN_H_
