#ifndef GMB_TESTS_KEEPER_HANDOVER_MODEL_H_
#define GMB_TESTS_KEEPER_HANDOVER_MODEL_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "keeper/claim.h"
#include "keeper/life.h"

// The hand-over as a machine of small steps: brokers that die, stop and hang up
// at any moment, a keeper, the journal, and a client that asks for one lease,
// has it, and releases it. The choice of whom the keeper serves, and of when it
// gives all back, is that of the functions that the product uses
// (keeper/claim.h, life.h); the order of the broker's steps is that of
// docs/handover.md.
namespace gmb::keeper::model {

inline constexpr int kBrokers = 3;
inline constexpr int kSlabs = 2;

enum class Life : uint8_t {
  kAbsent,
  kGreets,  // asks the keeper to be served
  kServed,  // and has fetched nothing yet
  kUp,      // has the fds, and the journal mapped
  kGone,
};

// The work that a broker is about. The slab that it is about is `slab`.
enum class Job : uint8_t {
  kIdle,
  kCreated,
  kPutting,  // the keeper has not answered yet
  kPut,
  kHalf,  // one of the two records that belong together
  kJournaled,
  kSent,
  kFreed,      // the records are gone, the fd not yet
  kUnstored,   // the other way round, where that order is under test
  kRefilling,  // a new keeper has not all of it yet
};

struct Broker {
  Life life = Life::kAbsent;
  bool stopped = false;
  bool connected = false;  // to the keeper
  bool knows = false;      // the lease
  Job job = Job::kIdle;
  uint8_t slab = 0;
  uint8_t has = 0;  // fds of slabs, a bit each

  [[nodiscard]] bool alive() const {
    return life != Life::kAbsent && life != Life::kGone;
  }
};

// The fault that a step can find.
enum FaultNumber : uint8_t {
  kNoFault,
  kRecordWithoutSlab,
  kHalfACommit,
  kServedTwice,
};
enum class Client : uint8_t { kAsks, kHasFd, kHas, kReleases, kDone, kDead };

struct State {
  std::array<Broker, kBrokers> brokers{};
  // The keeper.
  uint8_t kept = 0;    // slabs
  int8_t holder = -1;  // broker
  bool holder_connected = false;
  bool holder_dead = false;
  bool keeper_is_new = false;  // and has not been filled
  bool keeper_died = false;    // once is enough
  // The journal: two records that belong together; each with the slab.
  bool lease_record = false;
  bool mapping_record = false;
  uint8_t record_slab = 0;
  Client client = Client::kAsks;
  uint8_t client_slab = 0;
  uint8_t fault = kNoFault;  // of a step: a FaultNumber

  [[nodiscard]] std::string Describe() const;
};

constexpr uint8_t Bit(int slab) { return static_cast<uint8_t>(1 << slab); }
// It was sent the slab, and has not given it back.
inline bool ClientHas(const State& state) {
  return state.client == Client::kHasFd || state.client == Client::kHas;
}

uint64_t Encode(const State& state);
State Decode(uint64_t key);

struct Step {
  const char* name;
  State to;
  bool fault = false;  // something goes wrong
  bool fresh = false;  // somebody starts something, which nobody has to do
};

// The rules under test. The defaults are the product's; a test that replaces
// one shows that the explorer finds what that rule is for.
struct Rules {
  bool (*may_serve)(const std::optional<Holder>&, const Process&) = MayServe;
  std::optional<Time> (*gives_back_at)(const LifeOptions&,
                                       const LifeFacts&) = GivesBackAt;
  bool serving_claims = true;     // who is served is the holder
  bool keeps_after_death = true;  // of the broker
  bool awaits_put = true;         // before the journal
  bool stores_before_journal = true;
  bool journals_before_send = true;
  bool commits_at_once = true;  // records that belong together
  bool frees_before_remove = true;
  bool answers_from_journal = true;  // a repeated request
  bool drops_unnamed = true;         // kept slabs without a record
  bool refills = true;               // a new keeper
  bool takes_lock = true;            // of its directory, before it greets
};

struct World {
  bool keeper_dies = false;
  // Brokers are in pid namespaces that the keeper does not see. Otherwise it is
  // their numbers that it does not know.
  bool pids_are_hidden = false;
};

// All steps that can be taken in `from`.
std::vector<Step> Steps(const World& world, const Rules& rules,
                        const State& from);

// Nothing if `state` is safe, otherwise what is wrong.
std::optional<std::string> Fault(const State& state);

// Nothing is under way, nobody waits for what could be given, and what is kept
// is what somebody has.
bool IsAtRest(const State& state);

}  // namespace gmb::keeper::model

#endif  // GMB_TESTS_KEEPER_HANDOVER_MODEL_H_
