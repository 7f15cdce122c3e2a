// The words in which the machine's tests are written: operators set terms,
// clients ask, devices and copies work when they are told to, and time goes on
// when it is said. After every turn the world checks its invariants; a test in
// which one is broken fails at its end.
#ifndef GMB_TESTS_BROKER_MACHINE_MACHINE_FIXTURE_H_
#define GMB_TESTS_BROKER_MACHINE_MACHINE_FIXTURE_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/sim_world.h"

namespace gmb::broker {

// The broker that a test begins with. Bytes are granules of 2 MiB everywhere.
struct MachineWorld {
  MachineOptions options = Options();
  uint64_t pools = 1;
  uint64_t granules = 64;  // of each pool; its device has an eighth more
  uint64_t host_granules = 128;
  uint64_t others_granules = 0;  // of each device, at the start
  device::DeviceKind kind = device::DeviceKind::kVmm;

 private:
  // Clients map at once: nothing waits for them.
  static MachineOptions Options() {
    MachineOptions options;
    options.mapping_time = quota::Nanoseconds{0};
    return options;
  }
};

// A tenant's, on every device.
struct Terms {
  uint64_t guarantee = 0;
  std::optional<uint64_t> limit = std::nullopt;  // none: `share`
  double share = 1;                              // of the pool
  double weight = 1;
  bool may_terminate = false;
  quota::Nanoseconds min_residency{0};
  quota::Nanoseconds pause_grace = std::chrono::seconds(5);
  std::optional<uint64_t> host_limit = std::nullopt;
  uint32_t max_handles = 4096;
  uint32_t max_sessions = 2000;
};

// How something is asked for.
struct Wish {
  quota::Nanoseconds wait{0};
  v1::Contents contents = v1::PRESERVE;
  std::string share_as = {};
  bool keep = false;
  std::string device = {};
};

class MachineFixture : public testing::Test {
 protected:
  static constexpr uint64_t kGranule = SimWorld::kGranule;
  static constexpr quota::PoolId kPool{1};

  explicit MachineFixture(const MachineWorld& shape = {});
  void TearDown() override { EXPECT_EQ(world.problem(), ""); }

  // --- Operators.
  absl::StatusOr<std::vector<v1::Change>> TrySetTenant(const std::string& name,
                                                       const Terms& terms);
  // The change on the first device.
  v1::Change SetTenant(const std::string& name, const Terms& terms = {});
  absl::StatusOr<v1::Change> Resize(uint64_t granules);
  absl::StatusOr<uint64_t> Drain(bool draining,
                                 const std::string& device = "sim-1");
  using Reclaimed = std::optional<absl::StatusOr<v1::ReclaimResponse>>;
  struct ReclaimWish {
    uint64_t granules = 0;  // what can be had
    v1::ReclaimRequest::Step to = v1::ReclaimRequest::EVICT;
    quota::Nanoseconds wait{0};
    std::string device = {};
  };
  std::shared_ptr<Reclaimed> Reclaim(const std::string& tenant,
                                     const ReclaimWish& wish);
  std::shared_ptr<Reclaimed> Reclaim(const std::string& tenant,
                                     uint64_t granules = 0) {
    return Reclaim(tenant, ReclaimWish{.granules = granules});
  }
  using Departed = std::optional<absl::Status>;
  std::shared_ptr<Departed> Depart(const std::string& tenant,
                                   quota::Nanoseconds wait);
  absl::Status Delete(const std::string& tenant);
  absl::StatusOr<uint32_t> DropLease(const std::string& tenant,
                                     const std::string& name);

  // --- Clients. The broker can kill them.
  [[nodiscard]] PeerIdentity PeerOf(const std::string& tenant);
  SimClient* Connect(const std::string& tenant);
  // With a gate that is on and parked; or with a scope in.
  SimClient* Parked(const std::string& tenant, const std::string& group = "");
  SimClient* Active(const std::string& tenant, const std::string& group = "");
  static void Park(SimClient* client);
  // False: the gate lets no scope in.
  static bool Enter(SimClient* client);
  // The process ends, and what it holds is back.
  void End(SimClient* client) { world.Close(client, "its process ended"); }

  uint64_t Send(SimClient* client, v1::ClientMessage message);
  void Notify(SimClient* client, const v1::ClientMessage& message) {
    world.Send(client, message);
  }
  uint64_t Ask(SimClient* client, uint64_t granules, const Wish& wish = {});
  // Granted at once, sealed if it has a name.
  quota::LeaseId Lease(SimClient* client, uint64_t granules,
                       const Wish& wish = {});
  // After unmapping.
  uint64_t Release(SimClient* client, quota::LeaseId lease);
  void Cancel(SimClient* client, uint64_t request);
  uint64_t SetGate(SimClient* client, bool on, const std::string& group = "");
  uint64_t Restore(SimClient* client,
                   quota::Nanoseconds wait = std::chrono::seconds(10));
  uint64_t Seal(SimClient* client, quota::LeaseId lease);
  uint64_t Attach(SimClient* client, const std::string& name,
                  quota::Nanoseconds wait = std::chrono::seconds(0));
  uint64_t Drop(SimClient* client, const std::string& name);
  void SetTrimmable(SimClient* client, uint64_t granules);
  void Trimmed(SimClient* client, bool busy = false);
  // Answers the moves that it was told: as they ask, or with an error.
  void Follow(SimClient* client);
  void RefuseMoves(SimClient* client, const std::string& why = "it will not");
  void NewStream(SimClient* client);

  // The request's fate: "nothing", "waits", "granted", "attached",
  // "released", "report", "gate set", "restored", "sealed", "dropped", or the
  // reason of the refusal.
  [[nodiscard]] static std::string Outcome(const SimClient* client,
                                           uint64_t request);
  // Its answer; empty: it has none.
  [[nodiscard]] static v1::BrokerMessage AnswerTo(const SimClient* client,
                                                  uint64_t request);
  // How often it was told so.
  [[nodiscard]] static size_t Told(const SimClient* client,
                                   v1::BrokerMessage::KindCase kind);

  // --- The world.
  void RunDevice();
  // No slab can be made, one attempt after the other, until the request has an
  // answer. How many attempts that took; 50 at most.
  int FailCreatesUntilAnswered(const SimClient* client, uint64_t request);
  void RunCopies(bool fail = false);
  // Devices and copies work until there is nothing to do, killed processes end,
  // and clients follow: all but those of `stubborn`.
  void Work();
  // Likewise, for so long.
  void RunFor(quota::Nanoseconds time);
  std::set<const SimClient*> stubborn;
  int killed = 0;

  // The contents of a lease that is mapped, a number a granule.
  void Write(SimClient* client, quota::LeaseId lease, uint64_t first);
  std::vector<uint64_t> Read(SimClient* client, quota::LeaseId lease);

  // --- Things that can be seen.
  // "mapped", "evicting", "evicted", "restoring", or "gone".
  [[nodiscard]] std::string Where(quota::LeaseId lease) const;
  [[nodiscard]] quota::LeaseView LeaseView(quota::LeaseId lease) const;
  [[nodiscard]] bool IsHard(quota::LeaseId lease) const {
    return LeaseView(lease).hard;
  }
  // The only one.
  [[nodiscard]] quota::LeaseId TheLease() const;
  [[nodiscard]] quota::TenantId IdOf(const std::string& tenant) const;
  [[nodiscard]] quota::TenantPoolView Of(const std::string& tenant,
                                         quota::PoolId pool = kPool) const;
  [[nodiscard]] quota::PoolView InPool(quota::PoolId pool = kPool) const;
  [[nodiscard]] Composition Parts(quota::PoolId pool = kPool) const;
  [[nodiscard]] uint64_t HeadroomLeft() const;
  [[nodiscard]] const ReclaimIndex& Index() const { return *state().reclaim; }
  [[nodiscard]] const GateWatchList& Watch() const {
    return *state().gate_watch;
  }
  // For requests that lack bytes.
  [[nodiscard]] const Look& LookAt() const;
  [[nodiscard]] uint64_t Resident(const std::string& tenant) const {
    return Of(tenant).resident_bytes / kGranule;
  }
  [[nodiscard]] uint64_t Waiting() const { return InPool().waiting; }
  // Of the tenant, in the host pool.
  [[nodiscard]] HostBooks::Amounts InHostPool(const std::string& tenant) const;
  [[nodiscard]] const ::gmb::broker::Session& SessionOf(
      const SimClient* client) const {
    return state().SessionAt(client->session);
  }
  [[nodiscard]] bool IsOpen(const SimClient* client) const {
    return state().sessions->Find(client->session) != nullptr;
  }
  [[nodiscard]] static ipc::GateWord GateOf(const SimClient* client) {
    return ipc::GateWord(client->cells->word.load());
  }
  [[nodiscard]] static bool IsClosed(const SimClient* client) {
    return GateOf(client).state() == ipc::GateState::kClosed;
  }
  [[nodiscard]] std::vector<v1::Event> Events(const std::string& kind) const;
  [[nodiscard]] const State& state() const { return world.state(); }

  SimWorld world;
};

// The reason of a refusal: "OK", or its name.
std::string ReasonOf(const absl::Status& status);
google::protobuf::Duration ToDuration(quota::Nanoseconds time);

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_MACHINE_FIXTURE_H_
