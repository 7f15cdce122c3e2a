// Groups: sessions of one tenant that are closed and restored together.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
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

void Core::LeaveGroup(Session* session) {
  if (session->group.empty()) return;
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

// Of the member whose gate is the least parked.
quota::Gate Core::LookAtMembers(const Session& session,
                                quota::Instant now) const {
  quota::Gate least = session.gate->Look(now);
  if (session.group.empty()) return least;
  for (const uint64_t id : groups_.at({*session.tenant, session.group})) {
    least = std::min(least, sessions_.at(id)->gate->Look(now));
  }
  return least;
}

// All or none. False: one has just left its parking place.
bool Core::CloseMembers(Session* session) {
  std::vector<Session*> closed;
  for (Session* member : Members(session)) {
    if (member->gate->closed()) continue;
    if (!member->gate->Close()) {
      for (Session* undo : closed) (void)undo->gate->Reopen();
      return false;
    }
    closed.push_back(member);
  }
  return true;
}

}  // namespace gmb::broker
