#ifndef GMB_KEEPER_WIRE_CRC32C_H_
#define GMB_KEEPER_WIRE_CRC32C_H_

#include <array>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace gmb::keeper {

namespace internal {

constexpr std::array<uint32_t, 256> MakeCrc32cTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < table.size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    table[i] = crc;
  }
  return table;
}

inline constexpr std::array<uint32_t, 256> kCrc32cTable = MakeCrc32cTable();

}  // namespace internal

// The checksum of RFC 3720 (Castagnoli). `before`: that of the bytes in front.
// Against accidents, not against forgers. (Abseil has one from 2023 on; Debian
// 12 has an older release.)
constexpr uint32_t Crc32c(absl::string_view bytes, uint32_t before = 0) {
  uint32_t crc = ~before;
  for (const char byte : bytes) {
    crc = (crc >> 8) ^
          internal::kCrc32cTable[(crc ^ static_cast<unsigned char>(byte)) &
                                 0xffU];
  }
  return ~crc;
}

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_WIRE_CRC32C_H_
