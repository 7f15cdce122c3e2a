#ifndef GMB_BROKER_MACHINE_ANSWER_LOG_H_
#define GMB_BROKER_MACHINE_ANSWER_LOG_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// The answers to a session's last requests, so that a request repeated on a new
// stream is answered alike and has no second effect. The oldest ones are
// forgotten first.
//
// They are kept as on the wire, one behind the other, in a buffer of bounded
// size. Reports of quotas are not kept: asking again has no effect. A long
// message of an error is shortened.
class AnswerLog {
 public:
  static constexpr size_t kMostAnswers = 1024;
  // All that a session's log costs.
  static constexpr size_t kMostBytes = size_t{32} << 10;
  static constexpr size_t kMostMessageBytes = 512;

  void Add(const v1::BrokerMessage& answer);
  // None: it was not answered, or the answer is not kept. O(n) for one that is
  // repeated, at once for one that is new.
  [[nodiscard]] std::optional<v1::BrokerMessage> Find(
      uint64_t request_id) const;
  // Whether the id is so old that its answer may have been forgotten.
  [[nodiscard]] bool IsForgotten(uint64_t request_id) const {
    return request_id <= forgotten_;
  }

  [[nodiscard]] size_t answers() const { return answers_; }
  [[nodiscard]] size_t bytes() const;

 private:
  // Before each answer in the buffer.
  struct Header {
    uint64_t request_id = 0;
    uint32_t device = 0;  // of a Grant, which has none then: 1 + its place
    uint32_t bytes = 0;
  };

  [[nodiscard]] Header HeaderAt(size_t at) const;
  // Its place among the devices, plus 1; 0: it is not to be kept there.
  [[nodiscard]] uint32_t PlaceOf(const std::string& device);
  void ForgetFirst();
  void MakeRoom(size_t bytes);

  std::vector<char> buffer_;
  size_t first_ = 0;  // where the oldest answer begins
  size_t answers_ = 0;
  uint64_t forgotten_ = 0;
  uint64_t greatest_ = 0;             // id that was ever added
  std::vector<std::string> devices_;  // that Grants have named
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_ANSWER_LOG_H_
