// A client of the simulated world: what it has been told, what it has mapped,
// and what it has written.
#ifndef GMB_TESTS_BROKER_MACHINE_SIM_CLIENT_H_
#define GMB_TESTS_BROKER_MACHINE_SIM_CLIENT_H_

#include <sys/types.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "broker/machine/effect.h"
#include "broker/machine/peer.h"
#include "device/allocator.h"
#include "gmb/v1/handle.pb.h"
#include "gmb/v1/session.pb.h"
#include "ipc/gate_page.h"
#include "quota/units.h"

namespace gmb::broker {

struct SimSlab {
  SlabId id = 0;
  uint64_t bytes = 0;
  device::SlabKey key = 0;
};

struct SimLease {
  quota::PoolId pool;
  std::vector<SimSlab> slabs;  // as mapped, or last mapped
  v1::Contents contents = v1::PRESERVE;
  std::string name;
  bool mapped = true;
  bool reader = false;
  bool sealed = false;
  // The tag that each granule should hold; empty: unknown (a reader's).
  std::vector<uint64_t> tags;
};

struct SimClient {
  uint64_t session = 0;
  std::string tenant;
  std::string token;
  Welcome welcome;
  pid_t pid = 0;
  std::shared_ptr<const base::UniqueFd> process;
  std::shared_ptr<ipc::GateCells> cells;
  uint64_t last_request = 0;
  bool ended = false;

  std::vector<v1::BrokerMessage> said;  // to it, in order
  // Acquires, Attaches and Restores that are not answered.
  std::map<uint64_t, v1::ClientMessage> asked;
  std::map<uint64_t, SimLease> leases;
  std::map<uint64_t, uint64_t> granted_by;  // requests: leases
  std::vector<v1::Slabs> frames;            // of slabs, in order
  // Packets of slabs by what they belong to: a request, or a move.
  std::map<std::pair<uint64_t, uint64_t>, std::vector<SimSlab>> packets;
  std::deque<v1::BrokerMessage> moves;  // not answered
  uint64_t last_move = 0;
  uint64_t trim = 0;  // not answered; 0: none
  bool in_scope = false;
  bool breaks_rules = false;  // it has written garbage into its gate

  // Counts what happened, so that a run in which nothing did is noticed.
  uint64_t granted = 0;
  uint64_t attached = 0;
  uint64_t evicted = 0;
  uint64_t restored = 0;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_SIM_CLIENT_H_
