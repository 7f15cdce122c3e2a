#ifndef GMB_TESTS_FUZZ_INPUT_H_
#define GMB_TESTS_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/types/span.h"

namespace gmb::fuzz {

// A fuzzer's bytes, read from the front. Past their end all is zero.
class Input {
 public:
  explicit Input(absl::Span<const uint8_t> bytes) : left_(bytes) {}

  [[nodiscard]] bool empty() const { return left_.empty(); }

  uint8_t Byte() { return Number<uint8_t>(); }
  // Little-endian.
  template <typename T>
  T Number() {
    uint64_t value = 0;
    for (size_t i = 0; i < sizeof(T) && !left_.empty(); ++i) {
      value |= uint64_t{left_.front()} << (8 * i);
      left_.remove_prefix(1);
    }
    return static_cast<T>(value);
  }
  size_t Below(size_t bound) { return Byte() % bound; }
  bool Flag() { return (Byte() & 1) != 0; }
  // Behind their number, which two bytes say.
  std::string Text() { return Take(Number<uint16_t>()); }
  // Likewise, one byte.
  std::string ShortText() { return Take(Byte()); }
  std::string Rest() { return Take(left_.size()); }

 private:
  std::string Take(size_t bytes) {
    bytes = std::min(bytes, left_.size());
    std::string taken(reinterpret_cast<const char*>(left_.data()), bytes);
    left_.remove_prefix(bytes);
    return taken;
  }

  absl::Span<const uint8_t> left_;
};

// Aborts unless something holds that has to, whatever the bytes are.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %s\n", what);
  std::abort();
}

}  // namespace gmb::fuzz

#endif  // GMB_TESTS_FUZZ_INPUT_H_
