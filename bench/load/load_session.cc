// A client's life under load, and what it holds against the broker.
#include "bench/load/load_session.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "gmb/error.h"
#include "tests/component/contents.h"

namespace gmb::bench {
namespace {

// Longer than a broker that dies, its successor and a turn in the queue take
// together.
constexpr absl::Duration kBackPatience = absl::Seconds(40);
constexpr absl::Duration kMostWait = absl::Milliseconds(300);
constexpr absl::Duration kMostRest = absl::Milliseconds(40);

// Memory of the host device that is away has left nothing but its addresses. It
// may go or come while this looks. The kernel knows nothing of a GPU's.
bool IsAway(const Lease& lease) {
  if (!absl::StartsWith(lease.device(), "host")) return false;
  unsigned char page = 0;
  return ::mincore(lease.data(), static_cast<size_t>(::sysconf(_SC_PAGESIZE)),
                   &page) != 0 ||
         (page & 1) == 0;
}

// The reasons that a broker may have where more is asked for than there is.
bool IsScarcity(ErrorReason reason) {
  switch (reason) {
    case ErrorReason::kTenantLimit:
    case ErrorReason::kTooManyHandles:
    case ErrorReason::kPoolExhausted:
    case ErrorReason::kOvercommitted:
    case ErrorReason::kPausing:
      return true;
    default:
      return false;
  }
}

}  // namespace

LoadSession::LoadSession(Client* client, const SessionPlan& plan,
                         SessionSlot* slot, Tally* tally)
    : client_(client),
      plan_(plan),
      slot_(slot),
      tally_(tally),
      random_(plan.seed) {}

absl::Status LoadSession::Step() {
  if (plan_.pause > absl::ZeroDuration())
    absl::SleepFor(plan_.pause * static_cast<double>(random_() % 200) / 100);
  if (held_.empty()) return Acquire();
  const Mix& mix = plan_.mix;
  uint64_t dice = random_() % (mix.acquire + mix.release + mix.work + mix.rest);
  if (dice < mix.acquire)
    return held_.size() < plan_.most_leases ? Acquire() : Work();
  dice -= mix.acquire;
  if (dice < mix.release) return Release();
  if (dice < mix.release + mix.work) return Work();
  Rest();
  return absl::OkStatus();
}

absl::Status LoadSession::Finish() {
  while (!held_.empty()) GMB_RETURN_IF_ERROR(Release());
  return absl::OkStatus();
}

void LoadSession::Begin(Op op) {
  slot_->op = op;
  slot_->since_ns = std::chrono::steady_clock::now().time_since_epoch().count();
}

void LoadSession::Count(Op op, absl::Time began) {
  tally_->of(op).Add(absl::Now() - began);
}

bool LoadSession::IsRefusal(const absl::Status& status) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  if (!detail.has_value() || !IsScarcity(detail->reason)) return false;
  ++tally_->refusals.at(static_cast<size_t>(detail->reason));
  return true;
}

absl::Status LoadSession::Acquire() {
  AcquireOptions options;
  options.wait = kMostWait * static_cast<double>(random_() % 100) / 100;
  Begin(Op::kAcquire);
  const absl::Time began = absl::Now();
  absl::StatusOr<Lease> lease =
      client_->Acquire(1 + random_() % plan_.most_bytes, options);
  if (!lease.ok()) {
    if (!IsRefusal(lease.status())) return lease.status();
    // Somebody has to make room.
    return held_.empty() ? absl::OkStatus() : Release();
  }
  Count(Op::kAcquire, began);
  void* const address = lease->data();
  held_.push_back({.lease = *std::move(lease), .address = address});
  if (random_() % 4 == 0) return absl::OkStatus();  // may go unwritten
  return Work();
}

absl::Status LoadSession::Enter(Scope* scope, bool* in) {
  const bool away = std::any_of(
      held_.begin(), held_.end(),
      [](const Held& held) { return held.written && IsAway(held.lease); });
  Begin(away ? Op::kWake : Op::kScope);
  const absl::Time began = absl::Now();
  absl::StatusOr<Scope> entered = client_->Enter(kBackPatience);
  *in = entered.ok();
  if (*in) {
    Count(away ? Op::kWake : Op::kScope, began);
    *scope = *std::move(entered);
    return absl::OkStatus();
  }
  if (absl::IsDeadlineExceeded(entered.status())) {
    ++tally_->refusals.at(0);
    return absl::OkStatus();
  }
  return IsRefusal(entered.status()) ? absl::OkStatus() : entered.status();
}

absl::Status LoadSession::Work() {
  Scope scope;
  bool in = false;
  GMB_RETURN_IF_ERROR(Enter(&scope, &in));
  if (!in) return GiveBack(0);
  for (Held& held : held_) {
    GMB_RETURN_IF_ERROR(Check(held));
    if (!held.sealed && (!held.written || random_() % 4 == 0))
      GMB_RETURN_IF_ERROR(Write(&held));
  }
  Held& any = held_[random_() % held_.size()];
  if (any.sealed || !any.written || random_() % 32 != 0)
    return absl::OkStatus();
  any.sealed = true;
  return any.lease.Seal();
}

void LoadSession::Rest() {
  slot_->since_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  absl::SleepFor(kMostRest * static_cast<double>(random_() % 100) / 100);
}

absl::Status LoadSession::Release() {
  const size_t which = random_() % held_.size();
  {
    Scope scope;
    bool in = false;
    GMB_RETURN_IF_ERROR(Enter(&scope, &in));
    if (in) GMB_RETURN_IF_ERROR(Check(held_[which]));
    if (!in) tally_->unread_bytes += held_[which].lease.size_bytes();
  }
  return GiveBack(which);
}

absl::Status LoadSession::GiveBack(size_t which) {
  std::swap(held_[which], held_.back());
  Held held = std::move(held_.back());
  held_.pop_back();
  Begin(Op::kRelease);
  const absl::Time began = absl::Now();
  GMB_RETURN_IF_ERROR(std::move(held.lease).Release());
  Count(Op::kRelease, began);
  // It is OK for a session that is over, too.
  return client_->status();
}

absl::Status LoadSession::Check(const Held& held) {
  if (held.lease.data() != held.address)
    return absl::DataLossError(absl::StrCat(held.lease.id(), " has moved"));
  const uint64_t count = component::CountWords(held.lease);
  words_.resize(count);
  GMB_RETURN_IF_ERROR(
      held.lease.CopyToHost(words_.data(), 0, held.lease.size_bytes()));
  uint64_t lost = 0;
  uint64_t foreign = 0;
  uint64_t first = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t word = words_[i];
    const bool is_own = word == 0 || component::TagOf(word) == plan_.tag;
    if (held.written ? word == component::Word(plan_.tag, held.seed, i)
                     : is_own)
      continue;
    if (lost + foreign == 0) first = i;
    ++(is_own ? lost : foreign);
  }
  tally_->verified_bytes += held.lease.size_bytes();
  if (lost + foreign == 0) return absl::OkStatus();
  tally_->lost_words += lost;
  tally_->foreign_words += foreign;
  return absl::DataLossError(absl::StrFormat(
      "lease %d of %d words (written %d, sealed %d): %d lost, %d of others; "
      "the first is %016x at %d",
      held.lease.id(), count, held.written, held.sealed, lost, foreign,
      words_[first], first));
}

absl::Status LoadSession::Write(Held* held) {
  held->seed = random_();
  held->written = true;
  words_.resize(component::CountWords(held->lease));
  for (uint64_t i = 0; i < words_.size(); ++i)
    words_[i] = component::Word(plan_.tag, held->seed, i);
  return held->lease.CopyFromHost(0, words_.data(), held->lease.size_bytes());
}

}  // namespace gmb::bench
