// Unanswered requests, to be repeated when the stream breaks.
#include "client/session/request_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/wire.h"
#include "proto/error_status.h"

namespace gmb::internal {

using v1::BrokerMessage;
using v1::ClientMessage;

namespace {

// Answers to so many trims are repeated after a break.
constexpr uint64_t kTrimsKept = 16;

bool HasAnswer(const ClientMessage& message) {
  switch (message.kind_case()) {
    case ClientMessage::kCancel:
    case ClientMessage::kMapped:
    case ClientMessage::kUnmapped:
    case ClientMessage::kSetTrimmable:
    case ClientMessage::kTrimmed:
      return false;
    default:
      return true;
  }
}

// Of the Evict or Map that the message answers; 0: it answers none.
uint64_t Move(const ClientMessage& message) {
  return message.has_unmapped() ? message.unmapped().move()
                                : message.mapped().move();
}

// That a request is about; 0: none.
uint64_t LeaseOf(const ClientMessage& message) {
  if (message.has_seal()) return message.seal().lease_id();
  if (message.has_export_lease()) return message.export_lease().lease_id();
  return message.release().lease_id();
}

uint64_t LeaseOfMove(const ClientMessage& message) {
  return message.has_unmapped() ? message.unmapped().lease_id()
                                : message.mapped().lease_id();
}

}  // namespace

uint64_t RequestTable::Queue(ClientMessage message) {
  const uint64_t id = ++last_id_;
  message.set_request_id(id);
  outbox_.emplace(id, std::move(message));
  return id;
}

uint64_t RequestTable::AddRequest(ClientMessage message) {
  Request request;
  request.kind = message.kind_case();
  request.asked_bytes = message.acquire().bytes();
  request.lease_id = LeaseOf(message);
  request.name = message.drop().name();
  if (message.has_release()) DropMapped(request.lease_id);
  const uint64_t id = Queue(std::move(message));
  requests_.emplace(id, std::move(request));
  return id;
}

void RequestTable::DropMapped(uint64_t lease_id) {
  std::erase_if(outbox_, [&](const auto& entry) {
    const ClientMessage& message = entry.second;
    return entry.first > written_ &&
           (message.has_mapped() || message.has_unmapped()) &&
           LeaseOfMove(message) == lease_id;
  });
}

void RequestTable::DropOutdated(const ClientMessage& message) {
  if (message.has_set_trimmable()) {
    trimmable_ = message;
    std::erase_if(outbox_, [](const auto& entry) {
      return entry.second.has_set_trimmable();
    });
  }
  // The broker asked for the newer move, or trim, so it has the answer to the
  // older one, or does not wait for it.
  if (const uint64_t move = Move(message); move != 0) {
    std::erase_if(outbox_, [&](const auto& entry) {
      return Move(entry.second) != 0 && Move(entry.second) <= move &&
             LeaseOfMove(entry.second) == LeaseOfMove(message);
    });
  }
  if (message.has_trimmed() && message.trimmed().trim() > kTrimsKept) {
    std::erase_if(outbox_, [&](const auto& entry) {
      return entry.first <= written_ && entry.second.has_trimmed() &&
             entry.second.trimmed().trim() <
                 message.trimmed().trim() - kTrimsKept;
    });
  }
}

void RequestTable::AddUnwatched(ClientMessage message) {
  if (HasAnswer(message)) return Abandon(AddRequest(std::move(message)));
  DropOutdated(message);
  Queue(std::move(message));
}

void RequestTable::ReleaseUnwatched(uint64_t lease_id) {
  ClientMessage message;
  message.mutable_release()->set_lease_id(lease_id);
  AddUnwatched(std::move(message));
}

void RequestTable::Abandon(uint64_t id) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return;
  Request& request = it->second;
  request.watched = false;
  if (request.grant.has_value()) {  // granted, and its slabs never all came, or
                                    // nobody took them
    const uint64_t lease_id = request.grant->lease_id();
    const bool exports = request.exports();
    requests_.erase(it);
    if (!exports) ReleaseUnwatched(lease_id);
  } else if (request.answer.has_value()) {
    requests_.erase(it);
  } else if (request.kind == ClientMessage::kRestore) {
    // Nobody wants in any more: not to be asked for again after a break.
    outbox_.erase(id);
    requests_.erase(it);
  } else {
    request.slabs = SlabSet();
  }
}

const ClientMessage* RequestTable::NextToWrite() {
  const auto next = outbox_.upper_bound(written_);
  if (next == outbox_.end()) return nullptr;
  written_ = next->first;
  return &next->second;
}

void RequestTable::Rewind() {
  written_ = 0;
  const bool said = std::any_of(
      outbox_.begin(), outbox_.end(),
      [](const auto& entry) { return entry.second.has_set_trimmable(); });
  if (trimmable_.has_value() && !said) Queue(*trimmable_);
}

void RequestTable::Confirm(uint64_t id) {
  for (auto it = outbox_.begin(); it != outbox_.end() && it->first < id;) {
    it = requests_.contains(it->first) ? std::next(it) : outbox_.erase(it);
  }
}

absl::Status RequestTable::OnMessage(BrokerMessage message) {
  const uint64_t id = message.request_id();
  if (id > last_id_)
    return ProtocolError("an answer to a request that was never made");
  Confirm(id);
  const auto it = requests_.find(id);
  // Answered before: what was repeated after a break may be answered twice.
  if (it == requests_.end() || it->second.answer.has_value())
    return absl::OkStatus();
  return OnAnswer(id, it->second, std::move(message));
}

std::optional<Answer> RequestTable::TakeAnswer(const Request& request,
                                               BrokerMessage& message) {
  const ClientMessage::KindCase asked = request.kind;
  switch (message.kind_case()) {
    case BrokerMessage::kReleased:
      if (asked != ClientMessage::kRelease ||
          message.released().lease_id() != request.lease_id) {
        return std::nullopt;
      }
      return std::move(*message.mutable_released());
    case BrokerMessage::kQuotaReport:
      if (asked != ClientMessage::kGetQuota) return std::nullopt;
      return std::move(*message.mutable_quota_report());
    case BrokerMessage::kGateSet:
      if (asked != ClientMessage::kSetGate) return std::nullopt;
      return std::move(*message.mutable_gate_set());
    case BrokerMessage::kRestored:
      if (asked != ClientMessage::kRestore) return std::nullopt;
      return std::move(*message.mutable_restored());
    case BrokerMessage::kSealed:
      if (asked != ClientMessage::kSeal ||
          message.sealed().lease_id() != request.lease_id) {
        return std::nullopt;
      }
      return std::move(*message.mutable_sealed());
    case BrokerMessage::kDropped:
      if (asked != ClientMessage::kDrop ||
          message.dropped().name() != request.name) {
        return std::nullopt;
      }
      return std::move(*message.mutable_dropped());
    default:
      return std::nullopt;
  }
}

absl::Status RequestTable::OnAnswer(uint64_t id, Request& request,
                                    BrokerMessage message) {
  switch (message.kind_case()) {
    case BrokerMessage::kError:
      Finish(id, request, proto::FromWireError(message.error()));
      return absl::OkStatus();
    case BrokerMessage::kWaiting:
      if (!request.for_lease()) break;
      request.ahead = message.waiting().ahead();
      return absl::OkStatus();
    case BrokerMessage::kGrant:
      if (!request.for_lease() || message.grant().attached() !=
                                      (request.kind == ClientMessage::kAttach))
        break;
      if (request.exports() && message.grant().lease_id() != request.lease_id)
        break;
      outbox_.erase(id);
      if (!request.watched) {
        const bool exports = request.exports();
        requests_.erase(id);
        if (!exports) ReleaseUnwatched(message.grant().lease_id());
        return absl::OkStatus();
      }
      request.grant = std::move(*message.mutable_grant());
      FinishIfComplete(id, request);
      return absl::OkStatus();
    default:
      break;
  }
  std::optional<Answer> answer = TakeAnswer(request, message);
  if (answer.has_value()) {
    Finish(id, request, *std::move(answer));
    return absl::OkStatus();
  }
  return ProtocolError(
      absl::StrCat("an answer of the wrong kind: request kind=", request.kind,
                   " answer kind=", message.kind_case()));
}

void RequestTable::Finish(uint64_t id, Request& request,
                          absl::StatusOr<Answer> answer) {
  outbox_.erase(id);
  if (request.watched) {
    request.grant.reset();
    request.answer = std::move(answer);
  } else {
    requests_.erase(id);
  }
}

void RequestTable::FinishIfComplete(uint64_t id, Request& request) {
  if (!request.grant.has_value() || !request.slabs.complete()) return;
  const v1::Grant& grant = *request.grant;
  if (request.slabs.lease_id() != grant.lease_id()) {
    // Of a broker that died before it granted them; this one's are on the way.
    request.slabs = SlabSet();
    request.slabs_taken = false;
    return;
  }
  absl::Status matches = request.slabs.Matches(grant);
  if (matches.ok() && grant.bytes() < request.asked_bytes) {
    matches = ProtocolError(
        absl::StrCat("a lease smaller than asked for: bytes=", grant.bytes(),
                     " asked=", request.asked_bytes));
  }
  if (matches.ok()) {
    // The grant stays here too, so that Abandon() can still give it back.
    request.answer = Granted{grant, std::move(request.slabs)};
    return;
  }
  const uint64_t lease_id = grant.lease_id();
  const bool exports = request.exports();
  request.slabs = SlabSet();
  Finish(id, request, std::move(matches));
  if (!exports) ReleaseUnwatched(lease_id);
}

absl::Status RequestTable::OnSlabs(const v1::Slabs& frame,
                                   std::vector<base::UniqueFd> fds) {
  GMB_RETURN_IF_ERROR(SlabSet::CheckFrame(frame, fds.size()));
  if (frame.move() != 0) return ProtocolError("slabs of two requests at once");
  const auto it = requests_.find(frame.request_id());
  if (it == requests_.end() || !it->second.watched ||
      it->second.answer.has_value()) {
    // Of a request that was given up; its lease goes back when the grant comes.
    return frame.request_id() <= last_id_
               ? absl::OkStatus()
               : ProtocolError("slabs for a request that was never made");
  }
  if (!it->second.for_lease()) {
    return ProtocolError("slabs for a request for no lease");
  }
  Request& request = it->second;
  if (request.slabs.Has(frame)) return absl::OkStatus();
  GMB_RETURN_IF_ERROR(request.slabs.Add(frame, std::move(fds)));
  // Those taken before were of a lease that was never granted.
  if (frame.first_slab() == 0) request.slabs_taken = false;
  FinishIfComplete(it->first, request);
  return absl::OkStatus();
}

bool RequestTable::HasNews(uint64_t id) const {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return false;
  const Request& request = it->second;
  return request.answer.has_value() || request.ahead.has_value() ||
         (request.slabs.complete() && !request.slabs_taken);
}

std::optional<absl::StatusOr<Answer>> RequestTable::TakeAnswer(uint64_t id) {
  const auto it = requests_.find(id);
  if (it == requests_.end() || !it->second.answer.has_value())
    return std::nullopt;
  std::optional<absl::StatusOr<Answer>> answer = std::move(it->second.answer);
  requests_.erase(it);
  return answer;
}

std::optional<EarlySlabs> RequestTable::TakeSlabs(uint64_t id) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return std::nullopt;
  Request& request = it->second;
  if (request.answer.has_value() || request.slabs_taken ||
      !request.slabs.complete()) {
    return std::nullopt;
  }
  request.slabs_taken = true;
  return EarlySlabs{request.slabs.TakeHandles(), request.slabs.slab_bytes()};
}

std::optional<uint64_t> RequestTable::TakeAhead(uint64_t id) {
  const auto it = requests_.find(id);
  if (it == requests_.end()) return std::nullopt;
  return std::exchange(it->second.ahead, std::nullopt);
}

}  // namespace gmb::internal
