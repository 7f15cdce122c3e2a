// Sessions and leases as their records.
#include "broker/machine/record_of.h"

#include "broker/machine/tenant.h"

namespace gmb::broker {
namespace {

// While slabs for it are being made nothing of it is on the device yet.
LeaseRecord::Place PlaceOf(const Lease& lease) {
  switch (lease.move->residence) {
    case Residence::kResident:
      return LeaseRecord::Place::kDevice;
    case Residence::kEvicting:
      return LeaseRecord::Place::kLeaving;
    case Residence::kEvicted:
      return LeaseRecord::Place::kHost;
    case Residence::kRestoring:
      return lease.held->preparing ? LeaseRecord::Place::kHost
                                   : LeaseRecord::Place::kReturning;
  }
  return LeaseRecord::Place::kDevice;
}

}  // namespace

bool IsRecorded(const Session& session) {
  return session.tenant.has_value() && !session.talk->ended;
}

bool IsRecorded(const Lease& lease) {
  return lease.life->state != v1::LeaseInfo::CREATING && !lease.life->doomed;
}

PoolRecord RecordOf(const State& state, const Pool& pool) {
  PoolRecord record{.device = pool.uuid(),
                    .baseline_bytes = pool.device->baseline_bytes,
                    .draining = pool.device->draining};
  for (const auto& [id, bytes] : pool.device->unreturned) {
    const Tenant* tenant = state.tenants->Find(id);
    if (tenant != nullptr) record.debts.push_back({tenant->policy.name, bytes});
  }
  if (pool.device->orphaned_bytes > 0)
    record.debts.push_back({"", pool.device->orphaned_bytes});
  return record;
}

SessionRecord RecordOf(const State& state, const Session& session) {
  const PeerIdentity& peer = session.peer;
  return {.id = session.id,
          .token = session.token,
          .tenant = state.TenantAt(*session.tenant).policy.name,
          .since = session.since,
          .origin = peer.origin,
          .tenant_directory = peer.tenant_directory,
          .pid = peer.pid,
          .uid = peer.uid,
          .gid = peer.gid,
          .program = peer.program,
          .gate_on = session.gate->on(),
          .group = *session.group,
          .never_lends = *session.never_lends,
          .greeting = session.talk->greeting,
          .last_drop = session.talk->last_drop};
}

LeaseRecord RecordOf(const State& state, const Lease& lease) {
  LeaseRecord record;
  record.id = lease.id.value;
  record.session = lease.request.session;
  record.tenant = state.TenantAt(lease.tenant).policy.name;
  record.device = state.PoolAt(lease.request.pool).uuid();
  record.bytes = lease.bytes;
  record.asked_bytes = lease.request.bytes;
  record.contents = lease.contents();
  const auto charged = state.engine->Lease(lease.id);
  record.soft = charged.has_value() && !charged->hard;
  record.mapped = lease.life->state == v1::LeaseInfo::MAPPED;
  record.since = lease.life->since;
  record.share_as = lease.request.share_as;
  record.keep = lease.request.keep;
  record.sealed = lease.sharing->sealed;
  record.shared = lease.sharing->shared;
  record.dropped = lease.sharing->dropped;
  record.export_key = lease.sharing->export_key;
  record.place = PlaceOf(lease);
  record.torn = lease.move->torn;
  if (record.place != LeaseRecord::Place::kHost) {
    for (const Slab& slab : lease.held->slabs)
      record.slabs.push_back({slab.id, slab.bytes});
  }
  for (const Mapping& mapping : lease.move->mappings) {
    record.mappings.push_back({.session = mapping.session,
                               .request = mapping.request,
                               .mapped = mapping.mapped,
                               .unmapped = mapping.unmapped,
                               .asked = mapping.asked});
  }
  record.has_room = state.host_books->HasRoom(lease.id);
  if (const auto* copy = state.host_books->TrueCopy(lease.id)) {
    record.room = *copy;
    record.room_is_true = true;
  }
  return record;
}

}  // namespace gmb::broker
