// Every grant and release: the books of one pool.
#include "quota/ledger.h"

#include <utility>

namespace gmb::quota {

template <typename Change>
void Ledger::Alter(Account& account, const Change& change) {
  const uint64_t effective_bytes = account.effective_bytes;
  totals_.Take(account);
  change();
  totals_.Add(account);
  if (account.effective_bytes != effective_bytes) account.budget_changed = true;
  pending_.Update(account);
  Touch(account);
}

std::optional<Refusal> Ledger::CheckQuota(TenantId tenant,
                                          const TenantQuota& quota) const {
  if (auto refusal =
          quota::CheckQuota(quota, target_bytes_, granularity_bytes_))
    return refusal;
  const Account* account = Find(tenant);
  const uint64_t others_bytes =
      totals_.requested_bytes -
      (account == nullptr ? 0 : account->requested.guarantee_bytes);
  const uint64_t sum_bytes =
      others_bytes + quota.guarantee.Resolve(target_bytes_, granularity_bytes_);
  if (sum_bytes <= target_bytes_) return std::nullopt;
  return Refusal{.reason = Reason::kOvercommitted,
                 .deficit_bytes = sum_bytes - target_bytes_};
}

std::optional<Ledger::TargetRefusal> Ledger::CheckTarget(
    uint64_t target_bytes) const {
  uint64_t sum_bytes = 0;
  std::optional<TargetRefusal> refused;
  for (const auto& [tenant, account] : accounts_) {
    if (auto refusal = quota::CheckQuota(account.quota, target_bytes,
                                         granularity_bytes_)) {
      // The one with the smallest id: the map has no order.
      if (!refused || tenant < refused->tenant) refused = {*refusal, tenant};
    }
    sum_bytes +=
        account.quota.guarantee.Resolve(target_bytes, granularity_bytes_);
  }
  if (refused || sum_bytes <= target_bytes) return refused;
  return TargetRefusal{.refusal = {.reason = Reason::kOvercommitted,
                                   .deficit_bytes = sum_bytes - target_bytes},
                       .tenant = {}};
}

void Ledger::SetTarget(uint64_t target_bytes) {
  target_bytes_ = target_bytes;
  // Sorted, so that guarantees which become pending together queue in a fixed
  // order.
  for (const Account* account : Accounts()) Resolve(*Find(account->tenant));
}

void Ledger::SetQuota(TenantId tenant, const TenantQuota& quota) {
  Account& account = accounts_[tenant];
  account.tenant = tenant;
  const uint64_t before_bytes = account.requested.guarantee_bytes;
  if (account.quota.weight != quota.weight) account.budget_changed = true;
  account.quota = quota;
  if (quota.guarantee.Resolve(target_bytes_, granularity_bytes_) >
      before_bytes) {
    // Asking for more is a new request: it queues behind those that asked
    // before.
    pending_.Leave(account);
  }
  Resolve(account);
}

void Ledger::Resolve(Account& account) {
  const ResolvedQuota before = account.requested;
  Alter(account, [&] {
    account.requested =
        quota::Resolve(account.quota, target_bytes_, granularity_bytes_);
    account.effective_bytes =
        std::min(account.effective_bytes, account.requested.guarantee_bytes);
  });
  if (account.requested.guarantee_bytes != before.guarantee_bytes ||
      account.requested.limit_bytes != before.limit_bytes) {
    account.budget_changed = true;
  }
}

void Ledger::SetUnreturned(TenantId tenant, uint64_t unreturned_bytes) {
  Account& account = accounts_[tenant];
  account.tenant = tenant;
  Alter(account, [&] { account.unreturned_bytes = unreturned_bytes; });
}

namespace {

// The figure that counts bytes in this place; null: none but the leased ones.
uint64_t* FigureOf(Account& account, Ledger::Place place) {
  switch (place) {
    case Ledger::Place::kHard:
      return nullptr;
    case Ledger::Place::kSoft:
      return &account.soft_bytes;
    case Ledger::Place::kEvicted:
      return &account.evicted_bytes;
  }
  return nullptr;
}

}  // namespace

void Ledger::AddLease(Account& account, uint64_t bytes, uint32_t handles,
                      Place place) {
  Alter(account, [&] {
    account.leased_bytes += bytes;
    if (uint64_t* figure = FigureOf(account, place)) *figure += bytes;
    account.handles += handles;
    ++account.leases;
  });
}

void Ledger::MoveLease(Account& account, uint64_t bytes, Place from, Place to) {
  Alter(account, [&] {
    if (uint64_t* figure = FigureOf(account, from)) *figure -= bytes;
    if (uint64_t* figure = FigureOf(account, to)) *figure += bytes;
  });
}

void Ledger::RemoveLease(Account& account, uint64_t bytes, uint32_t handles,
                         Place place) {
  Alter(account, [&] {
    account.leased_bytes -= bytes;
    if (uint64_t* figure = FigureOf(account, place)) *figure -= bytes;
    account.handles -= handles;
    --account.leases;
  });
}

void Ledger::SetBackInPart(Account& account, uint64_t bytes) {
  account.back_in_part_bytes = bytes;
  Touch(account);
}

void Ledger::RemoveAccount(TenantId tenant) {
  Account* account = Find(tenant);
  if (account == nullptr) return;
  totals_.Take(*account);
  pending_.Leave(*account);
  touched_.erase(std::remove(touched_.begin(), touched_.end(), tenant),
                 touched_.end());
  accounts_.erase(tenant);
}

void Ledger::WithdrawGuarantees() {
  // Sorted, so that they become pending in a fixed order.
  for (const Account* account : Accounts()) {
    Account& withdrawn = *Find(account->tenant);
    Alter(withdrawn, [&] { withdrawn.effective_bytes = 0; });
  }
}

void Ledger::GrowToWhatIsHeld() {
  capacity_bytes_ =
      std::max(capacity_bytes_,
               std::max(totals_.committed_bytes, totals_.ResidentBytes()) +
                   missing_.bytes);
}

void Ledger::Settle() {
  capacity_bytes_ = std::max(
      target_bytes_,
      std::min(capacity_bytes_,
               std::max(totals_.committed_bytes, totals_.ResidentBytes()) +
                   missing_.bytes));
  if (totals_.uncovered > 0) CoverHeld();
  const PendingGuarantees::Places& pending = pending_.places();
  while (!pending.empty() && SlackBytes() > 0) {
    Account& account = *Find(pending.begin()->second);
    // A guarantee that is not yet full is above what is hard, so each byte of
    // it costs one.
    const uint64_t short_bytes =
        account.requested.guarantee_bytes - account.effective_bytes;
    const uint64_t raise_bytes =
        std::min(short_bytes, static_cast<uint64_t>(SlackBytes()));
    Alter(account, [&] { account.effective_bytes += raise_bytes; });
  }
}

// The guarantee covers bytes that are held anyway at no cost. Bytes that a
// client holds against the promises to others, because it does not answer or
// give back, are not covered: the promises would stay broken when it does.
void Ledger::CoverHeld() {
  const uint64_t broken_bytes =
      SlackBytes() < 0 ? static_cast<uint64_t>(-SlackBytes()) : 0;
  std::vector<Account*> accounts;  // altering them changes the list
  accounts.reserve(pending_.places().size());
  for (const auto& [place, tenant] : pending_.places())
    accounts.push_back(Find(tenant));
  for (Account* account : accounts) {
    const uint64_t covered_bytes = account->CoveredBytes();
    const uint64_t bytes =
        covered_bytes - std::min(covered_bytes, broken_bytes);
    if (bytes > account->effective_bytes)
      Alter(*account, [&] { account->effective_bytes = bytes; });
  }
}

std::vector<Account*> Ledger::TakeTouched() {
  std::vector<Account*> touched;
  touched.reserve(touched_.size());
  for (const TenantId tenant : std::exchange(touched_, {})) {
    touched.push_back(Find(tenant));
    touched.back()->touched = false;
  }
  return touched;
}

Account* Ledger::Find(TenantId tenant) {
  const auto it = accounts_.find(tenant);
  return it == accounts_.end() ? nullptr : &it->second;
}

const Account* Ledger::Find(TenantId tenant) const {
  const auto it = accounts_.find(tenant);
  return it == accounts_.end() ? nullptr : &it->second;
}

std::vector<const Account*> Ledger::Accounts() const {
  std::vector<const Account*> accounts;
  accounts.reserve(accounts_.size());
  for (const auto& [tenant, account] : accounts_) accounts.push_back(&account);
  std::sort(
      accounts.begin(), accounts.end(),
      [](const Account* a, const Account* b) { return a->tenant < b->tenant; });
  return accounts;
}

void Ledger::Touch(Account& account) {
  if (account.touched) return;
  account.touched = true;
  touched_.push_back(account.tenant);
}

}  // namespace gmb::quota
