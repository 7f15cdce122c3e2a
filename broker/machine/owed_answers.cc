// Eviction: who has not answered in time, and still does not.
#include "broker/machine/owed_answers.h"

namespace gmb::broker {
namespace {

template <typename Counts, typename Name>
uint32_t Count(const Counts& counts, const Name& name) {
  const auto it = counts.find(name);
  return it == counts.end() ? 0 : it->second;
}

template <typename Counts, typename Name>
void CountDown(Counts& counts, const Name& name) {
  const auto it = counts.find(name);
  if (--it->second == 0) counts.erase(it);
}

}  // namespace

OwedAnswers::Process OwedAnswers::ProcessOf(const Session& session) {
  return session.peer.pid > 0 ? Process{session.peer.pid, 0}
                              : Process{0, session.id};
}

void OwedAnswers::Add(quota::LeaseId lease, const Session& session) {
  const Debtor debtor{ProcessOf(session), *session.tenant};
  if (!debtors_.emplace(Key{lease, session.id}, debtor).second) return;
  ++of_process_[debtor.process];
  ++of_tenant_[debtor.tenant];
}

quota::TenantId OwedAnswers::Remove(const Key& key) {
  const auto it = debtors_.find(key);
  const Debtor debtor = it->second;
  debtors_.erase(it);
  CountDown(of_process_, debtor.process);
  CountDown(of_tenant_, debtor.tenant);
  return debtor.tenant;
}

std::vector<OwedAnswers::Key> OwedAnswers::Keys() const {
  std::vector<Key> keys;
  keys.reserve(debtors_.size());
  for (const auto& [key, debtor] : debtors_) keys.push_back(key);
  return keys;
}

std::vector<OwedAnswers::Key> OwedAnswers::KeysOf(quota::LeaseId lease) const {
  std::vector<Key> keys;
  for (auto it = debtors_.lower_bound(Key{lease, 0});
       it != debtors_.end() && it->first.lease == lease; ++it) {
    keys.push_back(it->first);
  }
  return keys;
}

uint32_t OwedAnswers::OfProcess(const Session& session) const {
  return Count(of_process_, ProcessOf(session));
}

uint32_t OwedAnswers::OfTenant(quota::TenantId tenant) const {
  return Count(of_tenant_, tenant);
}

}  // namespace gmb::broker
