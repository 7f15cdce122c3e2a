#ifndef GMB_KEEPER_WIRE_BYTES_H_
#define GMB_KEEPER_WIRE_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace gmb::keeper {

// Numbers and short texts, one behind the other, little-endian. Pure.
class ByteWriter {
 public:
  template <typename T>
  ByteWriter& Number(T value) {
    for (size_t i = 0; i < sizeof(T); ++i)
      bytes_.push_back(static_cast<char>(uint64_t{value} >> (8 * i) & 0xff));
    return *this;
  }
  // Of at most 65,535 bytes, behind its length.
  ByteWriter& Text(absl::string_view text) {
    Number(static_cast<uint16_t>(text.size()));
    bytes_.append(text.data(), text.size());
    return *this;
  }
  [[nodiscard]] std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Reads what a ByteWriter has written, and survives everything else: once
// something is missing or too long, all that follows is empty and ok() false.
class ByteReader {
 public:
  explicit ByteReader(absl::string_view bytes) : left_(bytes) {}

  template <typename T>
  T Number() {
    uint64_t value = 0;
    if (!Has(sizeof(T))) return T{};
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t{static_cast<unsigned char>(left_[i])} << (8 * i);
    }
    left_.remove_prefix(sizeof(T));
    return static_cast<T>(value);
  }
  std::string Text(size_t most) {
    const size_t size = Number<uint16_t>();
    if (size > most || !Has(size)) {
      ok_ = false;
      return "";
    }
    std::string text(left_.substr(0, size));
    left_.remove_prefix(size);
    return text;
  }

  // All that was read was there.
  [[nodiscard]] bool ok() const { return ok_; }
  // And nothing is left over.
  [[nodiscard]] bool AtEnd() const { return ok_ && left_.empty(); }

 private:
  bool Has(size_t size) {
    ok_ = ok_ && left_.size() >= size;
    return ok_;
  }

  absl::string_view left_;
  bool ok_ = true;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_WIRE_BYTES_H_
