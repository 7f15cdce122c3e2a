#ifndef GMB_KEEPER_WIRE_CRC32C_H_
#define GMB_KEEPER_WIRE_CRC32C_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace gmb::keeper {

namespace internal {

// Of a byte that so many further bytes follow.
using Crc32cTables = std::array<std::array<uint32_t, 256>, 8>;

constexpr Crc32cTables MakeCrc32cTables() {
  Crc32cTables tables{};
  for (uint32_t i = 0; i < tables[0].size(); ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78U : 0U);
    tables[0][i] = crc;
  }
  for (size_t behind = 1; behind < tables.size(); ++behind) {
    for (size_t i = 0; i < tables[0].size(); ++i) {
      const uint32_t crc = tables[behind - 1][i];
      tables[behind][i] = (crc >> 8) ^ tables[0][crc & 0xffU];
    }
  }
  return tables;
}

inline constexpr Crc32cTables kCrc32cTables = MakeCrc32cTables();

}  // namespace internal

// The checksum of RFC 3720 (Castagnoli), 8 bytes at a time: the journal has one
// for each record, under the core's lock. `before`: that of the bytes in front.
// Against accidents, not against forgers. (Abseil has one from 2023 on; Debian
// 12 has an older release.)
constexpr uint32_t Crc32c(absl::string_view bytes, uint32_t before = 0) {
  const auto& tables = internal::kCrc32cTables;
  const auto byte = [](char c) {
    return static_cast<uint32_t>(static_cast<unsigned char>(c));
  };
  uint32_t crc = ~before;
  for (; bytes.size() >= 8; bytes.remove_prefix(8)) {
    const uint32_t first =
        crc ^ (byte(bytes[0]) | byte(bytes[1]) << 8U | byte(bytes[2]) << 16U |
               byte(bytes[3]) << 24U);
    crc = tables[7][first & 0xffU] ^ tables[6][(first >> 8U) & 0xffU] ^
          tables[5][(first >> 16U) & 0xffU] ^ tables[4][first >> 24U] ^
          tables[3][byte(bytes[4])] ^ tables[2][byte(bytes[5])] ^
          tables[1][byte(bytes[6])] ^ tables[0][byte(bytes[7])];
  }
  for (const char c : bytes)
    crc = (crc >> 8U) ^ tables[0][(crc ^ byte(c)) & 0xffU];
  return ~crc;
}

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_WIRE_CRC32C_H_
