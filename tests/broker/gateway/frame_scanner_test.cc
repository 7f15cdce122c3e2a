#include "broker/gateway/frame_scanner.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "tests/broker/gateway/frames.h"

namespace gmb::broker {
namespace {

struct Seen {
  uint32_t length;
  uint8_t type;
  uint8_t flags;
  uint32_t stream;
  friend bool operator==(const Seen&, const Seen&) = default;
};

uint32_t Draw(std::mt19937* random) {
  return static_cast<uint32_t>((*random)());
}

TEST(FrameScannerTest, FindsEveryHeaderHoweverTheBytesAreCut) {
  const unsigned seed = 20261123;
  SCOPED_TRACE(seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    std::vector<Seen> sent;
    for (int i = 0; i < 20; ++i) {
      const uint32_t length = random() % 3 == 0 ? 0 : Draw(&random) % 3000;
      const Seen frame{length, static_cast<uint8_t>(random()),
                       static_cast<uint8_t>(random()),
                       Draw(&random) & 0x7fffffff};
      sent.push_back(frame);
      // The reserved bit is not part of the stream.
      bytes += Frame(frame.type, frame.flags,
                     frame.stream | Draw(&random) % 2 << 31, frame.length);
    }
    FrameScanner scanner;
    std::vector<Seen> seen;
    for (size_t at = 0; at < bytes.size();) {
      const size_t piece = random() % 3 == 0 ? 1 : random() % 5000;
      const std::string part = bytes.substr(at, piece);
      at += part.size();
      ASSERT_TRUE(
          scanner
              .Scan(part,
                    [&](const FrameHeader& f) {
                      seen.push_back({f.length, f.type, f.flags, f.stream});
                      return absl::OkStatus();
                    })
              .ok());
    }
    ASSERT_EQ(seen, sent) << "round " << round;
  }
}

TEST(FrameScannerTest, AnErrorEndsTheScan) {
  FrameScanner scanner;
  int seen = 0;
  const absl::Status ended =
      scanner.Scan(Headers(1) + Headers(3), [&](const FrameHeader&) {
        ++seen;
        return absl::InternalError("enough");
      });
  EXPECT_EQ(ended, absl::InternalError("enough"));
  EXPECT_EQ(seen, 1);
}

}  // namespace
}  // namespace gmb::broker
