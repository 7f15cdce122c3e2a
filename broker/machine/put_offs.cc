// Acquires that wait for a silent keeper: found by time, and by whose they are.
#include "broker/machine/put_offs.h"

#include "quota/must_find.h"

namespace gmb::broker {

void PutOffs::Add(const PendingAcquire& request, quota::TenantId tenant) {
  const Owner owner{tenant, request.pool};
  in_time_.insert({*request.ask_again_at, request.id});
  owners_.emplace(request.id, owner);
  Group& group = groups_[owner];
  group.requests.insert(request.id);
  group.bytes += request.bytes;
  Sum& pool = pools_[request.pool];
  ++pool.requests;
  pool.bytes += request.bytes;
}

void PutOffs::Remove(const PendingAcquire& request) {
  in_time_.erase({*request.ask_again_at, request.id});
  const Owner owner = quota::MustFind(owners_, request.id, "put-off request");
  const auto group = groups_.find(owner);
  owners_.erase(request.id);
  group->second.requests.erase(request.id);
  group->second.bytes -= request.bytes;
  if (group->second.requests.empty()) groups_.erase(group);
  const auto pool = pools_.find(request.pool);
  pool->second.bytes -= request.bytes;
  if (--pool->second.requests == 0) pools_.erase(pool);
}

bool PutOffs::Has(const PendingAcquire& request) const {
  return request.ask_again_at.has_value() &&
         in_time_.contains({*request.ask_again_at, request.id});
}

std::vector<quota::RequestId> PutOffs::Of(quota::TenantId tenant,
                                          quota::PoolId pool,
                                          std::optional<quota::RequestId> after,
                                          size_t most) const {
  std::vector<quota::RequestId> found;
  const auto group = groups_.find({tenant, pool});
  if (group == groups_.end()) return found;
  const auto& requests = group->second.requests;
  auto it = after.has_value() ? requests.upper_bound(*after) : requests.begin();
  for (; it != requests.end() && found.size() < most; ++it)
    found.push_back(*it);
  return found;
}

PutOffs::Sum PutOffs::SumOf(quota::TenantId tenant, quota::PoolId pool) const {
  const auto group = groups_.find({tenant, pool});
  if (group == groups_.end()) return {};
  return {.requests = group->second.requests.size(),
          .bytes = group->second.bytes};
}

PutOffs::Sum PutOffs::SumOf(quota::PoolId pool) const {
  const auto found = pools_.find(pool);
  return found == pools_.end() ? Sum{} : found->second;
}

}  // namespace gmb::broker
