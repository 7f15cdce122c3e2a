// Several tenants may declare one uid: one of them has it.
#include "broker/declared/uids.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/declared/fields.h"
#include "broker/declared/merge.h"

namespace gmb::broker {
namespace {

constexpr char kUids[] = "uids";

struct Claim {
  std::string tenant;
  uint64_t order = 0;  // of the write
};
using Claims = std::map<uint32_t, std::vector<Claim>>;

// Tenants that are deleted, or about to be, declare none.
Claims ClaimsOf(const Declared& declared) {
  Claims claims;
  for (const auto& [name, subject] : declared.tenants) {
    const Written* const written = InForce(subject, kUids);
    if (written == nullptr || subject.deleted || IsLeaving(subject)) continue;
    for (const uint32_t uid : PolicyOf(name, {{kUids, written->value}}).uids)
      claims[uid].push_back({name, written->order});
  }
  return claims;
}

bool Has(const Claims& claims, uint32_t uid, const std::string& tenant) {
  const auto found = claims.find(uid);
  return found != claims.end() &&
         std::any_of(
             found->second.begin(), found->second.end(),
             [&](const Claim& claim) { return claim.tenant == tenant; });
}

// Those, and what tenants have now.
Claims ClaimsOf(const Declared& declared, const HeldUids& held) {
  Claims claims = ClaimsOf(declared);
  for (const auto& [uid, tenant] : held) {
    if (!Has(claims, uid, tenant)) claims[uid].push_back({tenant});
  }
  return claims;
}

// A claim that the others were there before; null: there is none.
const Claim* NewClaim(const std::vector<Claim>& claims, uint32_t uid,
                      const Claims& before) {
  for (const Claim& claim : claims) {
    if (!Has(before, uid, claim.tenant)) return &claim;
  }
  return nullptr;
}

absl::Status CheckNow(const Claims& before, const Claims& next) {
  for (const auto& [uid, claims] : next) {
    if (claims.size() < 2) continue;
    const Claim* const late = NewClaim(claims, uid, before);
    if (late == nullptr) continue;
    const Claim& owner =
        &claims.front() == late ? claims.back() : claims.front();
    return absl::InvalidArgumentError(absl::StrCat(
        "a uid belongs to one tenant: take it from tenant ", owner.tenant,
        " first, or name another: uid=", uid, " tenant=", late->tenant));
  }
  return absl::OkStatus();
}

// So that ends of other values are not looked at.
Declared UidsAlone(const Declared& declared) {
  Declared alone;
  for (const auto& [name, subject] : declared.tenants) {
    const auto uids = subject.fields.find(kUids);
    if (uids == subject.fields.end() || subject.deleted || IsLeaving(subject))
      continue;
    Subject& its = alone.tenants[name];
    its.maker = subject.maker;
    its.in_file = subject.in_file;
    its.fields.insert(*uids);
  }
  return alone;
}

}  // namespace

absl::Status CheckUids(const Declared& before, const Declared& next,
                       const HeldUids& held) {
  Declared was = UidsAlone(before);
  Declared is = UidsAlone(next);
  for (;;) {
    absl::Status checked = CheckNow(ClaimsOf(was, held), ClaimsOf(is, held));
    const std::optional<absl::Time> end = NextExpiry(is);
    if (!checked.ok() || !end.has_value()) return checked;
    (void)Expire(*end, &was);
    (void)Expire(*end, &is);
  }
}

UidOwners::UidOwners(const Declared& declared, const HeldUids& held) {
  for (const auto& [uid, claims] : ClaimsOf(declared)) {
    // Of equal ones the first.
    owners_[uid] = std::max_element(claims.begin(), claims.end(),
                                    [](const Claim& a, const Claim& b) {
                                      return a.order < b.order;
                                    })
                       ->tenant;
  }
  for (const auto& [uid, tenant] : held) owners_[uid] = tenant;
}

std::map<uint32_t, std::string> UidOwners::TakeOthers(
    TenantPolicy* policy) const {
  std::map<uint32_t, std::string> taken;
  std::erase_if(policy->uids, [&](uint32_t uid) {
    const auto owner = owners_.find(uid);
    const bool is_others =
        owner != owners_.end() && owner->second != policy->name;
    if (is_others) taken[uid] = owner->second;
    return is_others;
  });
  return taken;
}

}  // namespace gmb::broker
