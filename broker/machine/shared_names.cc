// The names of shared leases, and the Attaches that wait for them.
#include "broker/machine/shared_names.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

constexpr size_t kLongestSharedName = 128;

}  // namespace

absl::Status SharedNames::Check(quota::TenantId tenant,
                                const v1::Acquire& acquire) const {
  const std::string& name = acquire.share_as();
  if (name.empty()) {
    if (!acquire.keep()) return absl::OkStatus();
    return proto::MakeError(v1::BAD_REQUEST,
                            "only a lease that is to be shared can be kept: "
                            "give it a name",
                            {.field = "share_as"});
  }
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isprint(static_cast<unsigned char>(c));
  });
  if (name.size() > kLongestSharedName || !printable) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a shared lease's name has 1 to ", kLongestSharedName,
                     " printable characters"),
        {.field = "share_as"});
  }
  if (acquire.contents() != v1::PRESERVE &&
      acquire.contents() != v1::CONTENTS_UNSPECIFIED) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        "what is shared is sealed, so its contents have to be PRESERVE",
        {.field = "contents"});
  }
  if (Find(tenant, name) != nullptr) {
    return proto::MakeError(
        v1::NAME_TAKEN,
        absl::StrCat("a shared lease of this name is there, or is being made: "
                     "attach to it: name=",
                     name),
        {.field = "share_as"});
  }
  return absl::OkStatus();
}

void SharedNames::Take(quota::TenantId tenant, const PendingAcquire& request) {
  SharedName name;
  name.tenant = tenant;
  name.name = request.share_as;
  name.request = request.id;
  name.writer = request.session;
  names_.emplace(Key(tenant, request.share_as), std::move(name));
}

std::vector<PendingAttach> SharedNames::End(const SharedName& name) {
  std::vector<PendingAttach> waited = StopAllWaiting(name);
  names_.erase(names_.find({name.tenant, name.name}));
  return waited;
}

void SharedNames::SetLease(const SharedName& name, quota::LeaseId lease) {
  Mutable(name).lease = lease;
}

const SharedName* SharedNames::Find(quota::TenantId tenant,
                                    const std::string& name) const {
  const auto it = names_.find({tenant, name});
  return it == names_.end() ? nullptr : &it->second;
}

const SharedName* SharedNames::Of(quota::TenantId tenant,
                                  const PendingAcquire& request) const {
  const SharedName* name = Find(tenant, request.share_as);
  return name != nullptr && name->request == request.id ? name : nullptr;
}

std::vector<const SharedName*> SharedNames::OfTenant(
    quota::TenantId tenant) const {
  std::vector<const SharedName*> names;
  for (auto it = names_.lower_bound({tenant, ""});
       it != names_.end() && it->first.first == tenant; ++it) {
    names.push_back(&it->second);
  }
  return names;
}

void SharedNames::Wait(const SharedName& name, const PendingAttach& attach) {
  SharedName& changed = Mutable(name);
  const uint64_t arrival = ++arrivals_;
  changed.waiting.emplace(arrival, attach);
  ++changed.waiting_of[attach.session];
  due_.emplace(attach.deadline, attach.session, attach.client_id);
  by_session_[attach.session].insert_or_assign(
      attach.client_id, Place{Key(name.tenant, name.name), arrival});
}

void SharedNames::StopWaiting(uint64_t session, uint64_t client_id) {
  const auto of = by_session_.find(session);
  if (of == by_session_.end()) return;
  const auto place = of->second.find(client_id);
  if (place == of->second.end()) return;
  SharedName& name = names_.find(place->second.name)->second;
  const auto it = name.waiting.find(place->second.arrival);
  const PendingAttach stopped = it->second;
  name.waiting.erase(it);
  Unlist(name, stopped);
}

std::vector<PendingAttach> SharedNames::StopWaiting(
    const SharedName& name,
    const std::function<bool(const PendingAttach&)>& which) {
  SharedName& changed = Mutable(name);
  std::vector<PendingAttach> stopped;
  for (auto it = changed.waiting.begin(); it != changed.waiting.end();) {
    if (!which(it->second)) {
      ++it;
      continue;
    }
    stopped.push_back(it->second);
    it = changed.waiting.erase(it);
  }
  changed.attempts = 0;
  for (const PendingAttach& attach : stopped) Unlist(changed, attach);
  return stopped;
}

std::vector<PendingAttach> SharedNames::StopAllWaiting(const SharedName& name) {
  return StopWaiting(name, [](const PendingAttach& /*any*/) { return true; });
}

void SharedNames::ForgetSession(uint64_t session) {
  for (const uint64_t client_id : RequestsOf(session))
    StopWaiting(session, client_id);
}

void SharedNames::CountAttempt(const SharedName& name) {
  ++Mutable(name).attempts;
}

const SharedName* SharedNames::WaitedFor(uint64_t session,
                                         uint64_t client_id) const {
  const auto of = by_session_.find(session);
  if (of == by_session_.end()) return nullptr;
  const auto it = of->second.find(client_id);
  if (it == of->second.end()) return nullptr;
  return Find(it->second.name.first, it->second.name.second);
}

std::vector<uint64_t> SharedNames::RequestsOf(uint64_t session) const {
  std::vector<uint64_t> requests;
  const auto of = by_session_.find(session);
  if (of == by_session_.end()) return requests;
  for (const auto& [client_id, place] : of->second)
    requests.push_back(client_id);
  return requests;
}

size_t SharedNames::WaitingOf(uint64_t session) const {
  const auto of = by_session_.find(session);
  return of == by_session_.end() ? 0 : of->second.size();
}

quota::Instant SharedNames::due() const {
  return due_.empty() ? quota::Instant::Max() : std::get<0>(*due_.begin());
}

std::pair<uint64_t, uint64_t> SharedNames::First() const {
  return {std::get<1>(*due_.begin()), std::get<2>(*due_.begin())};
}

SharedName& SharedNames::Mutable(const SharedName& name) {
  return names_.find({name.tenant, name.name})->second;
}

void SharedNames::Unlist(SharedName& name, const PendingAttach& attach) {
  const auto count = name.waiting_of.find(attach.session);
  if (--count->second == 0) name.waiting_of.erase(count);
  due_.erase({attach.deadline, attach.session, attach.client_id});
  const auto of = by_session_.find(attach.session);
  of->second.erase(attach.client_id);
  if (of->second.empty()) by_session_.erase(of);
}

}  // namespace gmb::broker
