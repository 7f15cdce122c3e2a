#include "broker/machine/session_groups.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kLongestName = 63;

}  // namespace

absl::Status SessionGroups::Join(Session* session, const std::string& name) {
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
  groups_[{*session->tenant, name}].emplace(session->id, session);
  return absl::OkStatus();
}

void SessionGroups::Leave(Session* session) {
  if (session->group.empty()) return;
  const auto group = groups_.find({*session->tenant, session->group});
  group->second.erase(session->id);
  if (group->second.empty()) groups_.erase(group);
  session->group.clear();
}

std::vector<Session*> SessionGroups::Members(Session* session) const {
  if (session->group.empty()) return {session};
  std::vector<Session*> members;
  for (const auto& [id, member] :
       groups_.at({*session->tenant, session->group})) {
    members.push_back(member);
  }
  return members;
}

quota::GroupId SessionGroups::IdOf(const Session& session) const {
  if (session.group.empty()) return {};
  return {groups_.at({*session.tenant, session.group}).begin()->first};
}

bool CloseAll(const std::vector<Session*>& sessions) {
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
