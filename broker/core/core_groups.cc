// Groups: sessions of one tenant that are closed and restored together.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "broker/core/afterwards.h"
#include "broker/core/core.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kLongestName = 63;

}  // namespace

absl::Status Core::JoinGroup(Session* session, const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (name.size() > kLongestName || !printable) {
    return proto::MakeError(v1::BAD_REQUEST,
                            absl::StrCat("a group's name has at most ",
                                         kLongestName, " printable characters"),
                            {.field = "group"});
  }
  if (name.empty() || session->group == name) return absl::OkStatus();
  if (!session->group.empty()) {
    return proto::MakeError(v1::BAD_STATE,
                            "the session is in another group: turn its gate "
                            "off first");
  }
  session->group = name;
  groups_[{*session->tenant, name}].insert(session->id);
  return absl::OkStatus();
}

// What waits for leases of all members is asked for anew, by AdvanceRestore.
void Core::LeaveGroup(Session* session, Afterwards* after) {
  if (session->group.empty()) return;
  std::vector<quota::RequestId> cancelled;
  for (Session* member : Members(session)) {
    const auto asked = std::exchange(member->restoring, std::nullopt);
    if (!asked.has_value()) continue;
    restoring_.erase(*asked);
    cancelled.push_back(*asked);
    Tell(quota::Cancel{*asked}, after);
  }
  for (const quota::RequestId asked : cancelled)
    AdvanceOthers(asked, session, after);
  const auto group = groups_.find({*session->tenant, session->group});
  group->second.erase(session->id);
  if (group->second.empty()) groups_.erase(group);
  session->group.clear();
}

// Of its group; itself alone without one.
std::vector<Session*> Core::Members(Session* session) const {
  if (session->group.empty()) return {session};
  std::vector<Session*> members;
  for (const uint64_t id : groups_.at({*session->tenant, session->group})) {
    members.push_back(sessions_.at(id).get());
  }
  return members;
}

// The first member's id names the group for the planner, which only compares.
quota::GroupId Core::GroupOf(const Session& session) const {
  if (session.group.empty()) return {};
  return {*groups_.at({*session.tenant, session.group}).begin()};
}

// All or none. False: one has just left its parking place.
bool Core::CloseAll(const std::vector<Session*>& sessions) {
  std::vector<std::pair<SessionGate*, std::optional<quota::Instant>>> closed;
  for (const Session* session : sessions) {
    SessionGate* gate = session->gate.get();
    if (gate->closed()) continue;
    const auto pausing_until = gate->pausing_until();
    if (!gate->Close()) {
      for (auto& [undo, until] : closed) {
        (void)undo->Reopen();
        if (until.has_value()) undo->Pause(*until);
      }
      return false;
    }
    closed.emplace_back(gate, pausing_until);
  }
  return true;
}

}  // namespace gmb::broker
