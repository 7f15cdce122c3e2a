#ifndef GMB_BROKER_CORE_SESSION_H_
#define GMB_BROKER_CORE_SESSION_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/time/time.h"
#include "broker/core/outbox.h"
#include "broker/core/peer.h"
#include "quota/units.h"

namespace gmb::broker {

// The answers of a session's last requests, so that a request repeated on a new
// stream is answered alike and has no second effect.
class AnswerLog {
 public:
  static constexpr size_t kKept = 1024;

  void Add(const v1::BrokerMessage& answer) {
    answers_[answer.request_id()] = answer;
    if (answers_.size() > kKept) {
      forgotten_ = answers_.begin()->first;
      answers_.erase(answers_.begin());
    }
  }
  [[nodiscard]] const v1::BrokerMessage* Find(uint64_t request_id) const {
    auto it = answers_.find(request_id);
    return it == answers_.end() ? nullptr : &it->second;
  }
  // Whether the id is so old that its answer may have been forgotten.
  [[nodiscard]] bool IsForgotten(uint64_t request_id) const {
    return request_id <= forgotten_;
  }

 private:
  std::map<uint64_t, v1::BrokerMessage> answers_;
  uint64_t forgotten_ = 0;
};

struct Session {
  uint64_t id = 0;
  PeerIdentity peer;
  std::string token;
  std::optional<quota::TenantId> tenant;  // none: an operator
  absl::Time since;
  std::shared_ptr<Outbox> outbox;
  uint64_t last_frame = 0;
  absl::flat_hash_map<uint64_t, quota::RequestId>
      pending;  // by the client's request id
  absl::flat_hash_set<quota::LeaseId> leases;
  AnswerLog answers;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_SESSION_H_
