#ifndef GMB_CLIENT_SESSION_INBOX_H_
#define GMB_CLIENT_SESSION_INBOX_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/unique_fd.h"
#include "client/lease/mover.h"
#include "client/session/calls.h"
#include "client/session/gate_switch.h"
#include "client/session/handle_channel.h"
#include "client/session/notifier.h"
#include "client/session/stream_channel.h"
#include "client/session/trim_hook.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// All that the broker sends arrives here: the one place that says which part
// takes it. Has no lock and no state. When the broker breaks the protocol, or
// memory is lacking, it ends the session.
class Inbox final : public MessageSink, public SlabSink {
 public:
  // All outlive the last message; they need not be made yet.
  Inbox(Calls* calls, Mover* mover, GateSwitch* gate, TrimHook* trim_hook,
        Notifier* notifier);
  Inbox(const Inbox&) = delete;
  Inbox& operator=(const Inbox&) = delete;
  ~Inbox() = default;

  void OnMessage(v1::BrokerMessage message, uint64_t reader) override;
  void OnStreamRefused(const absl::Status& why) override;
  absl::Status OnSlabs(const v1::Slabs& slabs, std::vector<base::UniqueFd> fds,
                       uint64_t reader) override;

 private:
  absl::Status TakeAnswer(v1::BrokerMessage message, uint64_t reader);
  // Takes messages that the broker sends unasked.
  absl::Status TakeNotice(const v1::BrokerMessage& message);

  Calls& calls_;
  Mover& mover_;
  GateSwitch& gate_;
  TrimHook& trim_hook_;
  Notifier& notifier_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_INBOX_H_
