#ifndef GMB_TESTS_BROKER_KEEPING_RECORD_MAKERS_H_
#define GMB_TESTS_BROKER_KEEPING_RECORD_MAKERS_H_

#include <cstdint>
#include <random>
#include <set>
#include <string>

#include "absl/time/time.h"
#include "broker/machine/records.h"

namespace gmb::broker {

// Random records, each of which a machine could have made: no slab and no piece
// of the host pool is in two leases.
class RecordMaker {
 public:
  explicit RecordMaker(uint32_t seed) : random_(seed) {}

  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Chance() { return Below(2) == 0; }
  absl::Time Time() {
    return absl::FromUnixNanos(static_cast<int64_t>(random_() >> 2));
  }
  std::string Bytes(size_t most) {
    std::string bytes(Below(most + 1), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random_());
    return bytes;
  }

  HeadRecord Head() {
    return {.session_ids_until = random_(),
            .lease_ids_until = random_(),
            .generation = Below(1000)};
  }
  PoolRecord Pool() {
    PoolRecord pool{.device = "gpu " + std::to_string(Below(3)),
                    .baseline_bytes = random_(),
                    .draining = Chance()};
    for (uint64_t i = Below(3); i > 0; --i)
      pool.debts.push_back({.tenant = Bytes(20), .bytes = random_()});
    return pool;
  }
  SessionRecord Session(uint64_t id) {
    return {.id = id,
            .token = "token " + std::to_string(id),
            .tenant = "t" + Bytes(60),
            .since = Time(),
            .origin = Chance() ? Origin::kShared : Origin::kTenantDirectory,
            .tenant_directory = Bytes(60),
            .pid = static_cast<pid_t>(Below(1 << 22)),
            .uid = static_cast<uid_t>(random_()),
            .gid = static_cast<gid_t>(random_()),
            .program = Bytes(300),
            .gate_on = Chance(),
            .group = Bytes(40),
            .never_lends = Bytes(200),
            .greeting = Chance(),
            .last_drop = Below(1000)};
  }
  LeaseRecord Lease(uint64_t id) {
    using Place = LeaseRecord::Place;
    LeaseRecord lease;
    lease.id = id;
    lease.session = Below(50);
    lease.tenant = "t" + Bytes(60);
    lease.device = "host-0";
    lease.bytes = random_();
    lease.asked_bytes = random_();
    lease.contents = Chance() ? v1::PRESERVE : v1::DISCARD;
    lease.soft = Chance();
    lease.mapped = Chance();
    lease.since = Time();
    lease.share_as = Bytes(64);
    lease.keep = Chance();
    lease.sealed = Chance();
    lease.shared = Chance();
    lease.dropped = Chance();
    lease.place = static_cast<Place>(Below(4));
    lease.torn = Chance();
    if (lease.place != Place::kHost) {
      for (uint64_t i = Below(Chance() ? 3 : 200); i > 0; --i) {
        last_slab_ += 1 + (Below(4) == 0 ? Below(9) : 0);
        lease.slabs.push_back(
            {last_slab_, Below(5) == 0 ? 7 : uint64_t{1} << 21});
      }
    }
    for (uint64_t session = 1 + Below(3); session < 40;
         session += 1 + Below(20)) {
      lease.mappings.push_back({.session = session,
                                .request = Below(1000),
                                .mapped = Chance(),
                                .unmapped = Chance(),
                                .asked = Chance()});
    }
    lease.has_room = Chance();
    lease.room_is_true = lease.has_room && Chance();
    for (uint64_t i = lease.has_room ? Below(5) : 0; i > 0; --i) {
      const uint64_t bytes = (1 + Below(4)) * device::kHostPoolGranularityBytes;
      lease.room.push_back({last_room_, bytes});
      last_room_ += bytes;
    }
    return lease;
  }

  // A turn's; `sessions` and `leases` are those that are recorded.
  RecordChanges Changes(std::set<uint64_t>* sessions,
                        std::set<uint64_t>* leases, uint64_t most) {
    RecordChanges changes;
    if (Below(4) == 0) changes.head = Head();
    if (Below(4) == 0) changes.pools.push_back(Pool());
    const auto end_some = [&](std::set<uint64_t>* all,
                              std::vector<uint64_t>* ended) {
      while (!all->empty() && (all->size() > most || Below(3) == 0)) {
        const auto one =
            std::next(all->begin(), static_cast<int64_t>(Below(all->size())));
        ended->push_back(*one);
        all->erase(one);
      }
    };
    end_some(sessions, &changes.ended_sessions);
    end_some(leases, &changes.ended_leases);
    for (uint64_t i = Below(3); i > 0; --i) {
      const uint64_t id = 1 + Below(2 * most);
      if (sessions->insert(id).second || Chance())
        changes.sessions.push_back(Session(id));
    }
    for (uint64_t i = Below(3); i > 0; --i) {
      const uint64_t id = 1 + Below(2 * most);
      leases->insert(id);
      changes.leases.push_back(Lease(id));
    }
    return changes;
  }

 private:
  std::mt19937_64 random_;
  SlabId last_slab_ = 0;
  uint64_t last_room_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_KEEPING_RECORD_MAKERS_H_
