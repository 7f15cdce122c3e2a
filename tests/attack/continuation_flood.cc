// Header blocks without an end: whoever keeps one until it is complete keeps
// all that is ever sent, and whoever looks at it anew with each frame is never
// done.
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/attack/attack.h"
#include "tests/attack/http_flood.h"
#include "tests/attack/http_frames.h"

namespace gmb::attack {
namespace {

// A call's headers that begin with `start` and go on with `frames` for ever.
absl::Status RunBlock(Attack& attack, const std::string& start,
                      const std::string& frames) {
  HttpFlood flood;
  flood.begin = [&](HttpConnection& connection, const std::string& token) {
    return Frame(FrameType::kHeaders, 0, connection.NextStream(),
                 absl::StrCat(CallHeaders(kSessionMethod, token), start));
  };
  flood.next = [&](HttpConnection&, const std::string&) { return frames; };
  Run(flood, attack);
  return absl::OkStatus();
}

std::string Continuation(const std::string& payload) {
  return Frame(FrameType::kContinuation, 0, 1, payload);
}

}  // namespace

absl::Status ContinuationFlood(Attack& attack) {
  return RunBlock(attack, "",
                  Continuation(Field("x", std::string(16'000, 'a'))));
}

absl::Status EndlessField(Attack& attack) {
  const std::string field = absl::StrCat(absl::string_view("\0", 1), Length(1),
                                         "x", Length(uint64_t{1} << 30));
  return RunBlock(attack, field,
                  Continuation(std::string(kMostFrameBytes, 'a')));
}

absl::Status EmptyContinuations(Attack& attack) {
  std::string many;
  for (int i = 0; i < 1'024; ++i) many += Continuation("");
  return RunBlock(attack, "", many);
}

}  // namespace gmb::attack
