// A machine with everything around it played by this process: devices, copies,
// clients and time. Nothing happens unless it is called for, so that the same
// calls give the same effects.
#ifndef GMB_TESTS_BROKER_MACHINE_SIM_WORLD_H_
#define GMB_TESTS_BROKER_MACHINE_SIM_WORLD_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "broker/core/device_tasks.h"
#include "broker/machine/adoption.h"
#include "broker/machine/machine.h"
#include "tests/broker/machine/record_book.h"
#include "tests/broker/machine/sim_allocator.h"
#include "tests/broker/machine/sim_client.h"
#include "tests/broker/machine/sim_keeper.h"

namespace gmb::broker {

class SimWorld {
 public:
  static constexpr uint64_t kMiB = uint64_t{1} << 20;
  static constexpr uint64_t kGranule = 2 * kMiB;
  static constexpr size_t kMostEffects = 100'000;

  // Pools of so many bytes each, with one host pool. Of each device others
  // hold `others_bytes` at the start, which the pool lacks at first.
  SimWorld(const MachineOptions& options, uint64_t pools, uint64_t pool_bytes,
           uint64_t host_pool_bytes, uint64_t others_bytes = 0,
           device::DeviceKind kind = device::DeviceKind::kVmm,
           uint64_t max_ready_tails = 0, uint64_t least_standing_bytes = 0);
  ~SimWorld() { SilenceKeeper(false); }

  Machine& machine() { return *machine_; }
  [[nodiscard]] const State& state() const { return machine_->state(); }
  // Empty, or what was found to be wrong first.
  [[nodiscard]] const std::string& problem() const { return problem_; }
  void Expect(bool holds, const std::string& what) {
    if (!holds && problem_.empty()) problem_ = what;
  }
  // Each turn is checked unless this says otherwise, one of so many:
  // with many sessions a check costs far more than a turn.
  void CheckEvery(uint64_t turns) { check_every_ = turns; }

  // How the broker's process fares in a turn.
  enum class Fate {
    kLives,
    kDiesBeforeItIsRecorded,
    kDiesOnceItIsRecorded,  // and nothing of it was begun
    kDiesOnceItIsCarriedOut,
  };
  // Asked in each turn. When it dies another one takes over at once.
  void SetFate(std::function<Fate()> fate) { fate_ = std::move(fate); }
  // Now, between two turns. `spoil` changes what the next one takes over;
  // `not_adopted` says what that cost.
  void Die(std::function<void(Adoption*)> spoil = nullptr) {
    spoil_ = std::move(spoil);
    Restart();
    spoil_ = nullptr;
  }
  std::vector<NotAdopted> not_adopted;

  // One turn: `work` is given the Turn, then the turn is settled, its effects
  // reach their queues, and everything is checked. `kind` says which event it
  // is, `details` the rest.
  template <typename Work>
  void Do(const std::string& kind, const std::string& details, Work work) {
    if (!problem_.empty()) return;
    ++events_of_kind[kind];
    Note(absl::StrCat("> ", kind, " ", details));
    Turn turn(now_, absl::FromUnixNanos(now_.ns),
              std::exchange(held_up_, false));
    turn.LimitSteps(kMostEffects);
    work(turn);
    machine_->Settle(turn);
    last_spent_ = turn.spent();
    Expect(!turn.exhausted(), "a turn goes round in circles");
    End(&turn, restarting_ || fate_ == nullptr ? Fate::kLives
                                               : std::function(fate_)());
    Check();
  }
  template <typename Work>
  void Do(const std::string& kind, Work work) {
    Do(kind, "", std::move(work));
  }

  // --- Time.
  [[nodiscard]] quota::Instant now() const { return now_; }
  // Of the last turn.
  [[nodiscard]] uint64_t last_spent() const { return last_spent_; }
  void Advance(quota::Nanoseconds by);
  // Likewise, and nobody says so: the next event comes at that time.
  void LetPass(quota::Nanoseconds by) { now_ = now_ + by; }
  void AdvanceToDue();
  // The next turn is the first of a process that was stopped until then.
  void HoldUp() { held_up_ = true; }

  // --- Devices and copies: one step of one, if there is any.
  bool StepDevice(quota::PoolId pool);
  bool StepCopy(bool out, bool fail);
  [[nodiscard]] SimAllocator& device(quota::PoolId pool) {
    return *devices_.at(pool).allocator;
  }
  [[nodiscard]] std::vector<quota::PoolId> pools() const;
  // A keeper that is silent has what is destroyed until it goes on.
  void SilenceKeeper(bool silent);

  // --- Clients.
  // Null: it is refused.
  SimClient* Connect(const std::string& tenant);
  absl::StatusOr<SimClient*> Open(const PeerIdentity& peer);
  [[nodiscard]] pid_t NextPid() { return ++last_pid_; }
  void Close(SimClient* client, const std::string& why);
  void Send(SimClient* client, v1::ClientMessage message);
  [[nodiscard]] std::vector<SimClient*> clients();
  // The contents of a slab, granule by granule: zeros, until it is written.
  std::vector<uint64_t>& Bytes(const SimSlab& slab);
  [[nodiscard]] bool IsAlive(quota::PoolId pool, SlabId slab) const;
  void HoldSlabs(const SimLease& lease, bool hold);

  // Everything that is under way goes on until nothing is left to do.
  void RunOut();

  // Notes what the machine has said and done, as text, and a sum over it.
  void Note(const std::string& line);
  [[nodiscard]] uint64_t trace_sum() const { return trace_sum_; }
  [[nodiscard]] const std::deque<std::string>& last_lines() const {
    return last_lines_;
  }
  std::map<std::string, uint64_t> events_of_kind;
  uint64_t replies = 0;  // operators' calls that were answered
  uint64_t restarts = 0;
  uint64_t adopted = 0;     // leases
  uint64_t copies_out = 0;  // slabs whose copying was asked for
  uint64_t copies_in = 0;
  std::vector<v1::Event> events;
  std::map<uint64_t, absl::Status> hung_up;  // sessions that have ended
  uint64_t last_tag = 0;

 private:
  struct SimDevice {
    SimAllocator* allocator;
    std::unique_ptr<DeviceTasks> tasks;
    std::deque<DeviceJob> jobs;
  };

  // Records a turn, and carries it out.
  void End(Turn* turn, Fate fate);
  void CheckRecords();
  // sim_restart.cc.
  void Restart();
  void AnswerOperators(std::vector<Effect> effects);
  [[nodiscard]] std::map<SlabId, Slab> DestroyWhatNobodyNamed(
      const Records& records);
  void SetUpAgain(const State& before);
  void Adopt(const Records& records, const std::map<SlabId, Slab>& slabs);
  void ReopenStreams();

  void Deliver(std::vector<Effect> effects);
  void Put(const Say& say);
  void Put(const SendSlabs& send);
  void Put(const ExpectMoves& moves);
  void Put(const HangUp& hang_up);
  void Put(Give give);
  void Put(const CopySlab& copy);
  void Put(const CancelCopies& cancel);
  void Put(const Kill& kill);
  void Put(const Reply& reply);
  void Put(const Publish& publish);
  void CopyBytes(const CopySlab& copy, bool out);
  void Check();
  void AskForWhatWasRefused();
  void Tick();
  void KeepRemoved(SlabId slab);
  SimClient* Find(uint64_t session);

  SimKeeper keeper_{[this](SlabId slab) { KeepRemoved(slab); }};
  // The slabs that a silent keeper has still.
  std::vector<std::pair<quota::PoolId, device::SlabKey>> kept_;
  std::atomic<SlabId> slab_ids_{1};
  std::map<quota::PoolId, SimDevice> devices_;
  quota::Instant now_{1'000'000'000};
  uint64_t last_spent_ = 0;
  std::unique_ptr<Machine> machine_;
  RecordBook book_;
  std::function<Fate()> fate_;
  std::function<void(Adoption*)> spoil_;
  bool held_up_ = false;
  bool restarting_ = false;
  bool setting_up_ = false;
  Fate last_fate_ = Fate::kLives;
  std::map<SlabId, std::pair<quota::PoolId, Slab>> made_;
  std::map<uint64_t, std::unique_ptr<SimClient>> clients_;
  std::deque<CopySlab> copies_;
  std::set<uint64_t> cancelled_;  // copy groups
  std::map<SlabId, std::vector<uint64_t>> device_bytes_;
  std::map<uint64_t, uint64_t> host_bytes_;  // by offset of the granule
  std::vector<std::shared_ptr<const base::UniqueFd>> killed_;
  // Requests that were refused at their deadlines in this turn, by session.
  bool ticking_ = false;
  std::vector<std::pair<uint64_t, v1::ClientMessage>> refused_;
  pid_t last_pid_ = 100;
  uint64_t last_token_ = 0;
  uint64_t host_pool_bytes_ = 0;
  std::string problem_;
  uint64_t check_every_ = 1;
  uint64_t turns_ = 0;
  uint64_t trace_sum_ = 14695981039346656037u;
  std::deque<std::string> last_lines_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_MACHINE_SIM_WORLD_H_
