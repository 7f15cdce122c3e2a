// The broker's writes to the words of gates; groups of sessions.
#include "broker/machine/gates.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/machine/recorder.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kLongestGroupName = 63;
constexpr size_t kLongestReason = 127;

}  // namespace

void Gates::SetOn(Session* session, bool on) {
  session->gate->SetOn(on, {});
  TellGroup(*session);
  Recorder(state_).TouchSession(session->id);
}

bool Gates::CloseAll(const std::vector<Session*>& sessions) {
  std::vector<std::pair<SessionGate*, std::optional<quota::Instant>>> closed;
  for (const Session* session : sessions) {
    SessionGate* gate = session->gate.get();
    if (gate->closed()) continue;
    const auto pausing_until = gate->pausing_until();
    if (!gate->Close({})) {
      for (auto& [undo, until] : closed) {
        (void)undo->Reopen({});
        if (until.has_value()) undo->Pause(*until, {});
      }
      return false;
    }
    closed.emplace_back(gate, pausing_until);
  }
  for (const auto& [gate, until] : closed) {
    gate->SetHeldUp(0, {});
    gate->SparePauses({}, {});  // it has parked: the next pause may succeed
  }
  return true;
}

bool Gates::Reopen(Session* session) { return session->gate->Reopen({}); }

void Gates::Pause(Session* session, quota::Instant until) {
  session->gate->Pause(until, {});
}

void Gates::Withdraw(Session* session) { session->gate->Withdraw({}); }

void Gates::SetHeldUp(Session* session, uint32_t pauses) {
  session->gate->SetHeldUp(pauses, {});
}

void Gates::SparePauses(Session* session, quota::Instant until) {
  session->gate->SparePauses(until, {});
}

absl::Status Gates::JoinGroup(Session* session, const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (name.size() > kLongestGroupName || !printable) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a group's name has at most ", kLongestGroupName,
                     " printable characters"),
        {.field = "group"});
  }
  if (name.empty() || *session->group == name) return absl::OkStatus();
  if (!session->group->empty()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session is in another group: turn its gate "
                            "off first");
  }
  session->group.Edit({}) = name;
  Recorder(state_).TouchSession(session->id);
  AddToGroup(session);
  return absl::OkStatus();
}

// All of a group are paused together: also for a lease of one that was none of
// them when their pause failed.
void Gates::SpareAlike(const Session& joined) {
  const auto& members = state_.groups->Members(*joined.tenant, *joined.group);
  quota::Instant until = joined.gate->not_paused_before();
  for (const uint64_t id : members)
    until = std::max(until, state_.SessionAt(id).gate->not_paused_before());
  for (const uint64_t id : members) SparePauses(&state_.SessionAt(id), until);
}

void Gates::Adopt(Session* session, const SessionRecord& record) {
  session->gate->Adopt(record.gate_on, {});
  session->never_lends.Edit({}) = record.never_lends;
  if (record.group.empty()) return;
  session->group.Edit({}) = record.group;
  AddToGroup(session);
}

void Gates::AddToGroup(Session* session) {
  state_.groups.Edit({}).Join(*session->tenant, *session->group, session->id);
  TellGroup(*session);
}

void Gates::TellGroup(const Session& session) {
  if (session.group->empty()) return;
  state_.groups.Edit({}).SetOff(*session.tenant, *session.group, session.id,
                                !session.gate->on());
}

void Gates::LeaveGroup(Session* session) {
  if (session->group->empty()) return;
  state_.groups.Edit({}).Leave(*session->tenant, *session->group, session->id);
  session->group.Edit({}).clear();
  Recorder(state_).TouchSession(session->id);
}

void Gates::SayNeverLends(Session* session, absl::string_view why) {
  if (why.empty()) return;
  std::string shown(why.substr(0, kLongestReason));
  std::replace_if(
      shown.begin(), shown.end(),
      [](char c) {
        return !absl::ascii_isprint(static_cast<unsigned char>(c));
      },
      ' ');
  session->never_lends.Edit({}) = std::move(shown);
  Recorder(state_).TouchSession(session->id);
}

}  // namespace gmb::broker
