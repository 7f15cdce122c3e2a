#ifndef GMB_CLIENT_SESSION_REQUEST_TABLE_H_
#define GMB_CLIENT_SESSION_REQUEST_TABLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "client/lease/early_mapping.h"
#include "client/lease/slab_set.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// The answer to Acquire, Attach or Export. The slabs have no handles if those were
// taken before.
struct Granted {
  v1::Grant grant;
  SlabSet slabs;
};

// The answer to a request; a refusal is the status instead.
using Answer = std::variant<Granted, v1::Released, v1::QuotaReport, v1::GateSet,
                            v1::Restored, v1::Sealed, v1::Dropped>;

// A session's requests: messages that the stream has yet to write, messages to
// repeat when it breaks, and the broker's answers. Pure: no threads, no clock,
// no I/O. Not thread-safe; the lock of Calls guards it.
//
// Requests are written in the order of their ids, also after a break, so an
// answer to one shows that everything before it on the stream has arrived.
//
// The broker is not trusted: an error from OnMessage or OnSlabs says how it
// broke the protocol, and the session should end.
class RequestTable {
 public:
  // Queues a message that is answered, with TakeAnswer() then, and returns its
  // id.
  uint64_t AddRequest(v1::ClientMessage message);
  // Queues a request whose answer nobody waits for, or a message without one.
  // Of messages that say how things stand, the newest takes the others' place.
  void AddUnwatched(v1::ClientMessage message);
  // Nobody waits for the answer any more. A lease that is or will be granted
  // is released. No-op for an unknown id.
  void Abandon(uint64_t id);

  // The next message to write on the open stream, or null. Valid until the
  // next call of a non-const member.
  [[nodiscard]] const v1::ClientMessage* NextToWrite();
  // A new stream is open, perhaps to another broker: everything unanswered is
  // written again, and how much could be trimmed.
  void Rewind();

  // An answer from the stream (request_id above 0).
  [[nodiscard]] absl::Status OnMessage(v1::BrokerMessage message);
  // Slabs from the handle socket; closes what belongs to no request.
  [[nodiscard]] absl::Status OnSlabs(const v1::Slabs& frame,
                                     std::vector<base::UniqueFd> fds);

  // Whether one of the next three has something for the call that waits.
  [[nodiscard]] bool HasNews(uint64_t id) const;
  // The answer, once; none yet while the request is unanswered, or a lease
  // has its grant and not yet its slabs.
  [[nodiscard]] std::optional<absl::StatusOr<Answer>> TakeAnswer(uint64_t id);
  // The slabs of a lease once all are here and its answer is not, once.
  [[nodiscard]] std::optional<EarlySlabs> TakeSlabs(uint64_t id);
  // How many requests the broker said are ahead in its queue, once.
  [[nodiscard]] std::optional<uint64_t> TakeAhead(uint64_t id);

  // Messages to write, now or when the stream breaks.
  [[nodiscard]] size_t unconfirmed() const { return outbox_.size(); }

 private:
  struct Request {
    v1::ClientMessage::KindCase kind = v1::ClientMessage::KIND_NOT_SET;
    bool watched = true;
    [[nodiscard]] bool for_lease() const {
      return kind == v1::ClientMessage::kAcquire ||
             kind == v1::ClientMessage::kAttach || exports();
    }
    // Answered as one for a lease is, which the session has and keeps.
    [[nodiscard]] bool exports() const {
      return kind == v1::ClientMessage::kExportLease;
    }
    uint64_t asked_bytes = 0;  // of an Acquire
    uint64_t lease_id = 0;     // of a Release, Seal or Export
    std::string name;          // of a Drop
    std::optional<uint64_t> ahead;
    std::optional<v1::Grant> grant;
    SlabSet slabs;
    bool slabs_taken = false;
    std::optional<absl::StatusOr<Answer>> answer;
  };

  uint64_t Queue(v1::ClientMessage message);
  // Of a lease that is released: it need not be told any more.
  void DropMapped(uint64_t lease_id);
  // Drops messages that `message` makes needless to say, or to repeat.
  void DropOutdated(const v1::ClientMessage& message);
  void ReleaseUnwatched(uint64_t lease_id);
  // Everything written before `id` has arrived; drops messages that have no
  // answer.
  void Confirm(uint64_t id);
  void Finish(uint64_t id, Request& request, absl::StatusOr<Answer> answer);
  void FinishIfComplete(uint64_t id, Request& request);
  // The answer in `message`, when it is one to such a request and says it all.
  static std::optional<Answer> TakeAnswer(const Request& request,
                                          v1::BrokerMessage& message);
  absl::Status OnAnswer(uint64_t id, Request& request,
                        v1::BrokerMessage message);

  uint64_t last_id_ = 0;
  uint64_t written_ = 0;  // the highest id written on the open stream
  std::map<uint64_t, v1::ClientMessage> outbox_;
  std::optional<v1::ClientMessage> trimmable_;  // as last said
  std::map<uint64_t, Request> requests_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_REQUEST_TABLE_H_
