#include "tests/keeper/handover_model.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::keeper::model {
namespace {

constexpr const char* kFaults[] = {
    "", "adoption finds a record without its slab",
    "adoption finds half a commit", "a request is served twice"};

// Packs numbers into a key, and takes them out again in the same order.
class Packer {
 public:
  Packer() = default;
  explicit Packer(uint64_t key) : key_(key), reads_(true) {}
  template <typename T>
  void Field(T& value, int bits, int offset = 0) {
    const uint64_t mask = (uint64_t{1} << bits) - 1;
    if (reads_) {
      value = static_cast<T>(static_cast<int>(key_ >> at_ & mask) - offset);
    } else {
      key_ |= (static_cast<uint64_t>(static_cast<int>(value) + offset) & mask)
              << at_;
    }
    at_ += bits;
  }
  [[nodiscard]] uint64_t key() const { return key_; }

 private:
  uint64_t key_ = 0;
  bool reads_ = false;
  int at_ = 0;
};

void Walk(Packer& pack, State& s) {
  for (Broker& broker : s.brokers) {
    pack.Field(broker.life, 3);
    pack.Field(broker.stopped, 1);
    pack.Field(broker.connected, 1);
    pack.Field(broker.knows, 1);
    pack.Field(broker.job, 4);
    pack.Field(broker.slab, 1);
    pack.Field(broker.has, 2);
  }
  pack.Field(s.kept, 2);
  pack.Field(s.holder, 2, 1);
  pack.Field(s.holder_connected, 1);
  pack.Field(s.holder_dead, 1);
  pack.Field(s.keeper_is_new, 1);
  pack.Field(s.keeper_died, 1);
  pack.Field(s.lease_record, 1);
  pack.Field(s.mapping_record, 1);
  pack.Field(s.record_slab, 1);
  pack.Field(s.client, 3);
  pack.Field(s.client_slab, 1);
  pack.Field(s.fault, 2);
}

}  // namespace

uint64_t Encode(const State& state) {
  State copy = state;
  Packer pack;
  Walk(pack, copy);
  return pack.key();
}

State Decode(uint64_t key) {
  State state;
  Packer pack(key);
  Walk(pack, state);
  return state;
}

std::optional<std::string> Fault(const State& state) {
  if (state.fault != kNoFault) return kFaults[state.fault];
  int up = 0;
  uint8_t living = state.kept;
  for (const Broker& broker : state.brokers) {
    up += broker.life == Life::kUp ? 1 : 0;
    living |= broker.has;
  }
  if (up > 1) return "two living brokers have the fds";
  if (ClientHas(state)) {
    const bool recorded =
        state.lease_record && state.record_slab == state.client_slab;
    if (!recorded) return "a client has a lease that nobody wrote down";
    if ((living & Bit(state.client_slab)) == 0)
      return "what a client has is lost";
  }
  return std::nullopt;
}

bool IsAtRest(const State& state) {
  bool any_up = false;
  for (const Broker& broker : state.brokers) {
    if (broker.life == Life::kGreets || broker.life == Life::kServed) {
      // It waits for the death of one that lives, or there is nothing to do.
      const bool waits = std::any_of(
          state.brokers.begin(), state.brokers.end(),
          [](const Broker& each) { return each.life == Life::kUp; });
      if (broker.life == Life::kServed || !waits) return false;
    }
    any_up = any_up || broker.life == Life::kUp;
  }
  if (!any_up) return true;  // nobody is left to start
  const uint8_t named = state.lease_record ? Bit(state.record_slab) : 0;
  const bool client_rests = state.client == Client::kHas ||
                            state.client == Client::kDone ||
                            state.client == Client::kDead;
  return client_rests && state.kept == named &&
         (state.client == Client::kHas) == state.lease_record;
}

std::string State::Describe() const {
  static constexpr const char* kLives[] = {"-", "greets", "served", "up",
                                           "gone"};
  static constexpr const char* kJobs[] = {
      "idle",      "created", "putting", "put",      "half",
      "journaled", "sent",    "freed",   "unstored", "refilling"};
  static constexpr const char* kClients[] = {"asks",     "has the fd", "has",
                                             "releases", "done",       "dead"};
  std::string text;
  for (const Broker& b : brokers) {
    absl::StrAppend(&text, kLives[static_cast<int>(b.life)],
                    b.stopped ? " stopped" : "", b.connected ? "*" : "", " ",
                    kJobs[static_cast<int>(b.job)], b.knows ? " knows" : "",
                    " has ", static_cast<int>(b.has), " | ");
  }
  return absl::StrCat(text, "kept ", static_cast<int>(kept), " holder ",
                      static_cast<int>(holder), holder_connected ? "*" : "",
                      holder_dead ? " dead" : "", keeper_is_new ? " new" : "",
                      " | records ", lease_record, mapping_record, " slab ",
                      static_cast<int>(record_slab), " | client ",
                      kClients[static_cast<int>(client)]);
}

}  // namespace gmb::keeper::model
