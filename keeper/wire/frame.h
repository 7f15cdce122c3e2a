#ifndef GMB_KEEPER_WIRE_FRAME_H_
#define GMB_KEEPER_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::keeper {

// The protocol between a keeper and its broker, or a command: one frame a
// packet of a Unix SEQPACKET socket, each question with one answer, one
// question at a time. docs/handover.md has the whole of it. Pure.

// The versions that this release speaks.
inline constexpr uint16_t kOldestVersion = 1;
inline constexpr uint16_t kNewestVersion = 1;

inline constexpr size_t kMaxFrameBytes = size_t{32} << 10;

enum class Kind : uint16_t {
  // Questions.
  kHello = 1,
  kPut = 2,
  kRemove = 3,
  kFetch = 4,
  kDone = 5,    // a broker's: nothing is to be kept any more
  kStatus = 6,  // anybody's
  kDrop = 7,    // a command's: give all back
  kLook = 8,    // a command's: the journal, to be read alone
  kCount = 9,   // a command's: how much memory and how many sessions
  // A successor's, in this order: serve nobody else from now on; a Fetch for
  // each page; the rest; it is mine.
  kHandOver = 10,
  kTake = 11,
  kTaken = 12,
  // Answers.
  kChallenge = 65,  // to a connection
  kWelcome = 66,
  kWait = 67,  // a Welcome may follow, once the last broker has died
  kOk = 68,
  kRefused = 69,
  kPage = 70,
  kStatusIs = 71,
  kCountIs = 72,
  kEstate = 73,
};

struct Frame {
  Kind kind{};
  // Chosen by the one who asks; the answer has the same. 0: a Challenge.
  uint32_t call = 0;
  std::string body;
};

[[nodiscard]] std::string Encode(const Frame& frame);
// INVALID_ARGUMENT unless the packet is one frame. An unknown kind is one too:
// the caller knows which of them it takes.
[[nodiscard]] absl::StatusOr<Frame> Decode(absl::string_view packet);

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_WIRE_FRAME_H_
