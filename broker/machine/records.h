#ifndef GMB_BROKER_MACHINE_RECORDS_H_
#define GMB_BROKER_MACHINE_RECORDS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "broker/machine/origin.h"
#include "broker/machine/slab.h"
#include "device/hostpool/host_extent.h"
#include "gmb/v1/session.pb.h"

// The promises of the machine, as a successor needs them (docs/handover.md).
// Tenants are named, and devices are UUIDs: ids of those are each broker's own.
namespace gmb::broker {

// Ids below these may have been given out. They are taken in blocks, so that
// this changes seldom.
struct HeadRecord {
  uint64_t session_ids_until = 0;
  uint64_t lease_ids_until = 0;
  // How many brokers had this journal, the first counted as 0. Numbers within a
  // session (of frames, moves, trims) go on from generation << 32.
  uint64_t generation = 0;

  friend bool operator==(const HeadRecord&, const HeadRecord&) = default;
};

// The bytes that a tenant has given back and still holds.
struct DebtRecord {
  std::string tenant;  // empty: it has been deleted
  uint64_t bytes = 0;

  friend bool operator==(const DebtRecord&, const DebtRecord&) = default;
};

struct PoolRecord {
  std::string device;
  // Free on the device before there was any slab, and before clients had their
  // contexts there.
  uint64_t baseline_bytes = 0;
  bool draining = false;
  std::vector<DebtRecord> debts = {};

  friend bool operator==(const PoolRecord&, const PoolRecord&) = default;
};

// A tenant's session; those of operators end with the broker.
struct SessionRecord {
  uint64_t id = 0;
  std::string token;
  std::string tenant;
  absl::Time since;
  Origin origin = Origin::kShared;
  std::string tenant_directory;
  pid_t pid = 0;
  uid_t uid = 0;
  gid_t gid = 0;
  std::string program;
  bool gate_on = false;
  std::string group;
  std::string never_lends;
  bool greeting = false;  // its Welcome was not sent yet
  // Of the last Drop that was carried out, the client's id.
  uint64_t last_drop = 0;

  friend bool operator==(const SessionRecord&, const SessionRecord&) = default;
};

// One session's view of a lease.
struct MappingRecord {
  uint64_t session = 0;
  // The client's Acquire, or Attach: repeated, it is answered with this lease.
  uint64_t request = 0;
  bool mapped = false;    // the client has said, once, that it has its slabs
  bool unmapped = false;  // it has said so since, of an eviction
  bool asked = false;     // to map or unmap it, and has not answered

  friend bool operator==(const MappingRecord&, const MappingRecord&) = default;
};

struct SlabRecord {
  SlabId id = 0;
  uint64_t bytes = 0;

  friend bool operator==(const SlabRecord&, const SlabRecord&) = default;
};

// A lease that was announced.
struct LeaseRecord {
  // Where its contents are, and what was under way.
  enum class Place : uint8_t {
    kDevice,
    kLeaving,    // the slabs are true; clients may have unmapped them
    kHost,       // it has no slabs
    kReturning,  // the host copy is true; clients may have mapped the slabs
  };

  uint64_t id = 0;
  uint64_t session = 0;  // that asked for it
  std::string tenant;
  std::string device;
  uint64_t bytes = 0;
  uint64_t asked_bytes = 0;
  v1::Contents contents = v1::PRESERVE;
  bool soft = false;    // as it is charged
  bool mapped = false;  // its client has said so, once
  absl::Time since;
  std::string share_as;  // empty: it is not to be shared
  bool keep = false;
  bool sealed = false;
  bool shared = false;
  bool dropped = false;
  std::string export_key;  // empty: it is not exported
  Place place = Place::kDevice;
  bool torn = false;  // the slabs are not true, although it has some
  std::vector<SlabRecord> slabs;  // in the order of addresses
  std::vector<MappingRecord> mappings;
  // Its room in the host pool; no extents: reserved, and without a place.
  bool has_room = false;
  std::vector<device::HostExtent> room;
  bool room_is_true = false;

  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

// The changes of a turn. All of them become true together.
struct RecordChanges {
  std::optional<HeadRecord> head;
  std::vector<PoolRecord> pools;
  std::vector<SessionRecord> sessions;
  std::vector<uint64_t> ended_sessions;
  std::vector<LeaseRecord> leases;
  std::vector<uint64_t> ended_leases;

  [[nodiscard]] bool empty() const {
    return !head.has_value() && pools.empty() && sessions.empty() &&
           ended_sessions.empty() && leases.empty() && ended_leases.empty();
  }
};

// All that is recorded; sessions and leases by their ids.
struct Records {
  HeadRecord head;
  std::vector<PoolRecord> pools;
  std::vector<SessionRecord> sessions;
  std::vector<LeaseRecord> leases;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_RECORDS_H_
