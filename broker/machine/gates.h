#ifndef GMB_BROKER_MACHINE_GATES_H_
#define GMB_BROKER_MACHINE_GATES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "broker/machine/records.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "quota/units.h"

namespace gmb::broker {

// The gates' words, as far as the broker writes them, and which sessions' gates
// are closed and opened together. It decides nothing.
class Gates {
 public:
  explicit Gates(State& state) : state_(state) {}

  void SetOn(Session* session, bool on);
  // All of them or none. False: one has just left its parking place.
  [[nodiscard]] bool CloseAll(const std::vector<Session*>& sessions);
  // False: the client has written over the word; it counts as open from now on.
  [[nodiscard]] bool Reopen(Session* session);
  void Pause(Session* session, quota::Instant until);
  void Withdraw(Session* session);
  // See SessionGate::held_up; whoever is closed begins anew.
  void SetHeldUp(Session* session, uint32_t pauses);
  // See SessionGate::not_paused_before.
  void SparePauses(Session* session, quota::Instant until);

  // A session of another broker, as that one has left it.
  void Adopt(Session* session, const SessionRecord& record);
  // An empty name changes nothing.
  [[nodiscard]] absl::Status JoinGroup(Session* session,
                                       const std::string& name);
  void LeaveGroup(Session* session);
  // All of the group that it has joined are spared pauses for as long as one of
  // them is.
  void SpareAlike(const Session& joined);

  // Notes the reason that a program gives, made fit to be shown. Empty changes
  // nothing.
  void SayNeverLends(Session* session, absl::string_view why);

 private:
  void AddToGroup(Session* session);
  void TellGroup(const Session& session);

  State& state_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_GATES_H_
