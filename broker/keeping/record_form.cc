// The promises of the machine, as bytes that its successor reads.
#include "broker/keeping/record_form.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/status_macros.h"
#include "gmb/journal/v1/records.pb.h"

namespace gmb::broker {
namespace {

namespace wire = journal::v1;

// No lease has as many; it bounds what a record can make of few bytes.
constexpr uint64_t kMostSlabs = uint64_t{1} << 20;

absl::Status Contradicts(absl::string_view what) {
  return absl::DataLossError(what);
}

template <typename Message>
absl::StatusOr<Message> Parse(absl::string_view bytes) {
  Message message;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Contradicts("its bytes are no record");
  }
  return message;
}

wire::Place WirePlace(LeaseRecord::Place place) {
  switch (place) {
    case LeaseRecord::Place::kDevice:
      return wire::DEVICE;
    case LeaseRecord::Place::kLeaving:
      return wire::LEAVING;
    case LeaseRecord::Place::kHost:
      return wire::HOST;
    case LeaseRecord::Place::kReturning:
      return wire::RETURNING;
  }
  return wire::PLACE_UNSPECIFIED;
}

std::optional<LeaseRecord::Place> PlaceOf(wire::Place place) {
  switch (place) {
    case wire::DEVICE:
      return LeaseRecord::Place::kDevice;
    case wire::LEAVING:
      return LeaseRecord::Place::kLeaving;
    case wire::HOST:
      return LeaseRecord::Place::kHost;
    case wire::RETURNING:
      return LeaseRecord::Place::kReturning;
    default:
      return std::nullopt;
  }
}

void PutSlabs(const std::vector<SlabRecord>& slabs, wire::Lease* lease) {
  wire::SlabRun* run = nullptr;
  for (const SlabRecord& slab : slabs) {
    if (run != nullptr && slab.bytes == run->size() &&
        slab.id == run->first() + run->count()) {
      run->set_count(run->count() + 1);
      continue;
    }
    run = lease->add_slabs();
    run->set_first(slab.id);
    run->set_count(1);
    run->set_size(slab.bytes);
  }
}

absl::Status TakeSlabs(const wire::Lease& from, LeaseRecord* lease) {
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  uint64_t left = kMost;  // of the sum of their sizes
  for (const wire::SlabRun& run : from.slabs()) {
    if (run.first() == 0 || run.size() == 0 || run.count() == 0 ||
        run.count() > kMostSlabs - lease->slabs.size() ||
        run.first() > kMost - run.count() || run.size() > left / run.count()) {
      return Contradicts("its slabs are none");
    }
    left -= run.size() * run.count();
    for (uint32_t i = 0; i < run.count(); ++i) {
      lease->slabs.push_back({.id = run.first() + i, .bytes = run.size()});
    }
  }
  return absl::OkStatus();
}

absl::Status TakeRoom(const wire::Lease& from, LeaseRecord* lease) {
  lease->has_room = from.has_room();
  lease->room_is_true = from.room().is_true();
  for (const wire::Extent& extent : from.room().extents()) {
    if (extent.size() == 0 ||
        extent.size() % device::kHostPoolGranularityBytes != 0 ||
        extent.offset() % device::kHostPoolGranularityBytes != 0 ||
        extent.offset() > std::numeric_limits<uint64_t>::max() - extent.size())
      return Contradicts("its room in the host pool is none");
    lease->room.push_back({.offset = extent.offset(), .bytes = extent.size()});
  }
  return absl::OkStatus();
}

absl::Status TakeMappings(const wire::Lease& from, LeaseRecord* lease) {
  for (const wire::Mapping& mapping : from.mappings()) {
    const auto same = [&](const MappingRecord& other) {
      return other.session == mapping.session();
    };
    if (mapping.session() == 0 ||
        std::any_of(lease->mappings.begin(), lease->mappings.end(), same)) {
      return Contradicts("its mappings are none");
    }
    lease->mappings.push_back({.session = mapping.session(),
                               .request = mapping.request(),
                               .mapped = mapping.mapped(),
                               .unmapped = mapping.unmapped(),
                               .asked = mapping.asked()});
  }
  return absl::OkStatus();
}

}  // namespace

std::string EncodeRecord(const HeadRecord& head) {
  wire::Head to;
  to.set_session_ids_until(head.session_ids_until);
  to.set_lease_ids_until(head.lease_ids_until);
  to.set_generation(head.generation);
  return to.SerializeAsString();
}

std::string EncodeRecord(const PoolRecord& pool) {
  wire::Pool to;
  to.set_device(pool.device);
  to.set_draining(pool.draining);
  to.set_baseline_bytes(pool.baseline_bytes);
  for (const DebtRecord& debt : pool.debts) {
    wire::Debt* const one = to.add_debts();
    one->set_tenant(debt.tenant);
    one->set_size(debt.bytes);
  }
  return to.SerializeAsString();
}

std::string EncodeRecord(const SessionRecord& session) {
  wire::Session to;
  to.set_token(session.token);
  to.set_tenant(session.tenant);
  to.set_since_unix_ns(absl::ToUnixNanos(session.since));
  to.set_origin(session.origin == Origin::kTenantDirectory
                    ? wire::TENANT_DIRECTORY
                    : wire::SHARED);
  to.set_tenant_directory(session.tenant_directory);
  to.set_pid(session.pid);
  to.set_uid(session.uid);
  to.set_gid(session.gid);
  to.set_program(session.program);
  to.set_gate_on(session.gate_on);
  to.set_group(session.group);
  to.set_never_lends(session.never_lends);
  to.set_greeting(session.greeting);
  to.set_last_drop(session.last_drop);
  return to.SerializeAsString();
}

std::string EncodeRecord(const LeaseRecord& lease) {
  wire::Lease to;
  to.set_session(lease.session);
  to.set_tenant(lease.tenant);
  to.set_device(lease.device);
  to.set_size(lease.bytes);
  to.set_asked_size(lease.asked_bytes);
  to.set_contents(lease.contents);
  to.set_soft(lease.soft);
  to.set_mapped(lease.mapped);
  to.set_since_unix_ns(absl::ToUnixNanos(lease.since));
  to.set_share_as(lease.share_as);
  to.set_keep(lease.keep);
  to.set_sealed(lease.sealed);
  to.set_shared(lease.shared);
  to.set_dropped(lease.dropped);
  to.set_export_key(lease.export_key);
  to.set_place(WirePlace(lease.place));
  to.set_torn(lease.torn);
  PutSlabs(lease.slabs, &to);
  for (const MappingRecord& mapping : lease.mappings) {
    wire::Mapping* const one = to.add_mappings();
    one->set_session(mapping.session);
    one->set_request(mapping.request);
    one->set_mapped(mapping.mapped);
    one->set_unmapped(mapping.unmapped);
    one->set_asked(mapping.asked);
  }
  if (lease.has_room) {
    wire::Room* const room = to.mutable_room();
    room->set_is_true(lease.room_is_true);
    for (const device::HostExtent& extent : lease.room) {
      wire::Extent* const one = room->add_extents();
      one->set_offset(extent.offset);
      one->set_size(extent.bytes);
    }
  }
  return to.SerializeAsString();
}

absl::StatusOr<HeadRecord> DecodeHead(absl::string_view bytes) {
  GMB_ASSIGN_OR_RETURN(const wire::Head from, Parse<wire::Head>(bytes));
  return HeadRecord{.session_ids_until = from.session_ids_until(),
                    .lease_ids_until = from.lease_ids_until(),
                    .generation = from.generation()};
}

absl::StatusOr<PoolRecord> DecodePool(absl::string_view bytes) {
  GMB_ASSIGN_OR_RETURN(const wire::Pool from, Parse<wire::Pool>(bytes));
  if (from.device().empty()) return Contradicts("it names no device");
  PoolRecord pool{.device = from.device(),
                  .baseline_bytes = from.baseline_bytes(),
                  .draining = from.draining()};
  for (const wire::Debt& debt : from.debts())
    pool.debts.push_back({.tenant = debt.tenant(), .bytes = debt.size()});
  return pool;
}

absl::StatusOr<SessionRecord> DecodeSession(uint64_t id,
                                            absl::string_view bytes) {
  GMB_ASSIGN_OR_RETURN(const wire::Session from, Parse<wire::Session>(bytes));
  if (id == 0 || from.token().empty() || from.tenant().empty())
    return Contradicts("it has no id, token or tenant");
  if (from.origin() != wire::TENANT_DIRECTORY && from.origin() != wire::SHARED)
    return Contradicts("by which socket it came is not known here");
  if (from.pid() < 0 || from.pid() > std::numeric_limits<pid_t>::max())
    return Contradicts("its pid is none");
  return SessionRecord{.id = id,
                       .token = from.token(),
                       .tenant = from.tenant(),
                       .since = absl::FromUnixNanos(from.since_unix_ns()),
                       .origin = from.origin() == wire::TENANT_DIRECTORY
                                     ? Origin::kTenantDirectory
                                     : Origin::kShared,
                       .tenant_directory = from.tenant_directory(),
                       .pid = static_cast<pid_t>(from.pid()),
                       .uid = from.uid(),
                       .gid = from.gid(),
                       .program = from.program(),
                       .gate_on = from.gate_on(),
                       .group = from.group(),
                       .never_lends = from.never_lends(),
                       .greeting = from.greeting(),
                       .last_drop = from.last_drop()};
}

absl::StatusOr<LeaseRecord> DecodeLease(uint64_t id, absl::string_view bytes) {
  GMB_ASSIGN_OR_RETURN(const wire::Lease from, Parse<wire::Lease>(bytes));
  if (id == 0 || from.tenant().empty() || from.device().empty())
    return Contradicts("it has no id, tenant or device");
  const std::optional<LeaseRecord::Place> place = PlaceOf(from.place());
  if (!place.has_value())
    return Contradicts("where its contents are is not known here");
  if (from.contents() > std::numeric_limits<int>::max() ||
      !v1::Contents_IsValid(static_cast<int>(from.contents())))
    return Contradicts("what becomes of its contents is not known here");
  LeaseRecord lease;
  lease.id = id;
  lease.session = from.session();
  lease.tenant = from.tenant();
  lease.device = from.device();
  lease.bytes = from.size();
  lease.asked_bytes = from.asked_size();
  lease.contents = static_cast<v1::Contents>(from.contents());
  lease.soft = from.soft();
  lease.mapped = from.mapped();
  lease.since = absl::FromUnixNanos(from.since_unix_ns());
  lease.share_as = from.share_as();
  lease.keep = from.keep();
  lease.sealed = from.sealed();
  lease.shared = from.shared();
  lease.dropped = from.dropped();
  lease.export_key = from.export_key();
  lease.place = *place;
  lease.torn = from.torn();
  GMB_RETURN_IF_ERROR(TakeSlabs(from, &lease));
  GMB_RETURN_IF_ERROR(TakeMappings(from, &lease));
  GMB_RETURN_IF_ERROR(TakeRoom(from, &lease));
  if (lease.place == LeaseRecord::Place::kHost && !lease.slabs.empty())
    return Contradicts("it has slabs, and its contents are in host memory");
  return lease;
}

}  // namespace gmb::broker
