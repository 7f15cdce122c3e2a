#ifndef GMB_BROKER_MACHINE_SESSION_DESK_H_
#define GMB_BROKER_MACHINE_SESSION_DESK_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "broker/machine/adoption.h"
#include "broker/machine/index_keeper.h"
#include "broker/machine/peer.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "gmb/v1/session.pb.h"
#include "quota/effect.h"

namespace gmb::broker {

// Sessions, from the greeting to the death of the process: who they are, what
// is said to them, and what they were answered.
class SessionDesk {
 public:
  SessionDesk(State& state, IndexKeeper& index)
      : state_(state), index_(index) {}

  [[nodiscard]] absl::StatusOr<Welcome> OpenSession(
      const PeerIdentity& peer, const std::string& token,
      std::unique_ptr<SessionGate>&& gate, Turn& turn);
  // One that another broker has opened. Null: its id, or token, is taken.
  Session* Adopt(const AdoptedSession& adopted, quota::TenantId tenant,
                 uint64_t generation, uint64_t last_lease, Turn& turn);
  // It was sent its Welcome.
  void OnWelcomed(uint64_t session);
  // Ids up to it were another broker's.
  void SkipIdsTo(uint64_t id) { state_.sessions.Edit({}).SkipTo(id); }
  // Its Grant may have been lost with the broker that gave it.
  static void ExpectAgain(Session* session, uint64_t client_id,
                          quota::LeaseId lease) {
    session->talk.Edit({}).granted_before.emplace(client_id, lease);
  }
  // Its process has ended: nobody can speak for it, and nobody hears what it is
  // told.
  void End(Session* session, absl::string_view reason, Turn& turn);
  // It is found no more. It stays where it is until the turn's end.
  void Remove(const Session& session, Turn& turn);
  // The owner of the token; `pid` is the process that presents it.
  [[nodiscard]] absl::StatusOr<Caller> Authenticate(absl::string_view token,
                                                    pid_t pid) const;
  // Whether the session may have a stream; and that it has a new one.
  [[nodiscard]] absl::Status CheckStream(uint64_t session) const;
  void OnStream(uint64_t session, Turn& turn);

  // Of an Acquire, which is not answered until Answer.
  void Expect(Session* session, uint64_t client_id, quota::RequestId request);
  // It is granted, and its lease's slabs are being made.
  static void OnMaking(Session* session, uint64_t client_id,
                       quota::LeaseId lease);
  // A Drop that was carried out.
  void OnDropped(Session* session, uint64_t client_id);
  void Answer(Session* session, v1::BrokerMessage answer, Turn& turn);
  void Refuse(Session* session, uint64_t client_id, const absl::Status& status,
              Turn& turn);
  // Answers a request that is repeated, or cannot be one. False: it is new.
  [[nodiscard]] bool AnswerAgain(Session* session, uint64_t client_id,
                                 Turn& turn);
  static void Say(const Session* session, v1::BrokerMessage message,
                  Turn& turn);
  // For a Grant (the request that it answers), or for a Map (its number).
  void SendSlabs(Session* session, const Lease& lease, uint64_t request_id,
                 uint64_t move, Turn& turn);
  void ReportQuota(Session* session, uint64_t client_id, Turn& turn);
  void OnBudgetChanged(const quota::BudgetChanged& changed, Turn& turn);

  // Kills its process. Whether it was killed now.
  bool Terminate(Session* session, Turn& turn);
  // The broker may not kill its process, which is treated from now on like one
  // that policy protects.
  void OnNotKilled(Session* session, const absl::Status& why, Turn& turn);
  // Killed processes that have not ended in time: what they have is not counted
  // on any more.
  void CheckDying(quota::Instant now);

 private:
  bool GrantAgain(Session* session, uint64_t client_id, Turn& turn);

  State& state_;
  IndexKeeper& index_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_SESSION_DESK_H_
