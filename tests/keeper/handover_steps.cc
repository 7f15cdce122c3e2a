// The steps of the hand-over's model, a function for each part of somebody's
// duty.
#include <algorithm>
#include <chrono>
#include <utility>

#include "tests/keeper/handover_model.h"

namespace gmb::keeper::model {
namespace {

bool ClientLives(const State& state) { return state.client != Client::kDead; }

// Slabs whose memory is there.
uint8_t Alive(const State& state) {
  uint8_t alive = state.kept;
  for (const Broker& broker : state.brokers) alive |= broker.has;
  if (ClientHas(state)) alive |= Bit(state.client_slab);
  return alive;
}

class Stepper {
 public:
  Stepper(const World& world, const Rules& rules, const State& from)
      : world_(world), rules_(rules), from_(from) {}

  std::vector<Step> All() && {
    for (int i = 0; i < kBrokers; ++i) {
      Begin(i);
      Die(i);
      if (from_.brokers[i].alive() && from_.brokers[i].stopped) {
        Add("goes on", [&](State& s) { s.brokers[i].stopped = false; });
        continue;
      }
      if (!from_.brokers[i].alive()) continue;
      Misbehave(i);
      Adopt(i);
      if (from_.brokers[i].life == Life::kUp) Work(i);
    }
    KeeperSteps();
    ClientSteps();
    return std::move(steps_);
  }

 private:
  template <typename Change>
  Step& Add(const char* name, const Change& change) {
    State to = from_;
    change(to);
    steps_.push_back({name, to});
    return steps_.back();
  }

  void Begin(int i) {
    if (from_.brokers[i].life != Life::kAbsent) return;
    // In turn, so that the same brokers are not counted in each order.
    if (i > 0 && from_.brokers[i - 1].life == Life::kAbsent) return;
    const bool locked = std::any_of(from_.brokers.begin(), from_.brokers.end(),
                                    [](const Broker& b) { return b.alive(); });
    // The lock is not the keeper's: where it is not under test, brokers that
    // compete come without it.
    if (world_.keeper_dies && rules_.takes_lock && locked) return;
    Add("a broker starts",
        [&](State& s) { s.brokers[i].life = Life::kGreets; });
  }

  // A new keeper that is not filled, and then the broker's death: two deaths
  // at once, which nobody survives.
  void Die(int i) {
    if (!from_.brokers[i].alive() || from_.keeper_is_new) return;
    Add("a broker is killed", [&](State& s) {
      s.brokers[i] = {.life = Life::kGone};
      if (s.holder != i) return;
      s.holder_connected = false;
      if (!rules_.keeps_after_death) s.kept = 0;
    }).fault = true;
  }

  void Misbehave(int i) {
    if (from_.brokers[i].life != Life::kUp) return;
    Add("a broker is stopped", [&](State& s) {
      s.brokers[i].stopped = true;
    }).fault = true;
    if (!from_.brokers[i].connected || world_.keeper_dies) return;
    Add("a broker hangs up", [&](State& s) {
      s.brokers[i].connected = false;
      if (s.holder == i) s.holder_connected = false;
      if (s.brokers[i].job == Job::kPutting) s.brokers[i].job = Job::kCreated;
    }).fault = true;
  }

  void Adopt(int i) {
    if (from_.brokers[i].life != Life::kServed) return;
    Add("adopts", [&](State& s) {
      Broker& broker = s.brokers[i];
      broker.life = Life::kUp;
      if (s.lease_record != s.mapping_record) s.fault = kHalfACommit;
      const uint8_t named = s.lease_record ? Bit(s.record_slab) : 0;
      if ((s.kept & named) != named) s.fault = kRecordWithoutSlab;
      if (rules_.drops_unnamed) s.kept &= named;
      broker.has = s.kept;
      broker.knows = s.lease_record && rules_.answers_from_journal;
      broker.slab = s.record_slab;
    });
  }

  void Work(int i) {
    const Broker& broker = from_.brokers[i];
    switch (broker.job) {
      case Job::kIdle:
        return Answer(i);
      case Job::kCreated:
        if (!rules_.stores_before_journal) return Journal(i, Job::kPut);
        return Put(i);
      case Job::kPutting:
        if (!rules_.awaits_put) Journal(i, Job::kJournaled);
        return;  // the keeper's turn
      case Job::kPut:
        if (!rules_.stores_before_journal) return Put(i);
        if (!rules_.journals_before_send) Send(i, Job::kSent);
        return Journal(i, Job::kJournaled);
      case Job::kHalf:
        Add("writes the other record", [&](State& s) {
          s.mapping_record = true;
          s.brokers[i].job = Job::kJournaled;
          s.brokers[i].knows = true;
        });
        return;
      case Job::kJournaled:
        return Send(i, Job::kSent);
      case Job::kSent:
        return Announce(i);
      case Job::kFreed:
      case Job::kUnstored:
        return Release(i);
      case Job::kRefilling:
        return Refill(i);
    }
  }

  void Answer(int i) {
    const Broker& broker = from_.brokers[i];
    const bool asks =
        from_.client == Client::kAsks || from_.client == Client::kHasFd;
    if (asks && broker.knows) {
      Add("answers from the journal", [&](State& s) {
        s.brokers[i].job = Job::kJournaled;
        s.brokers[i].slab = s.record_slab;
      });
    } else if (asks) {
      Create(i);
    } else if (from_.client == Client::kReleases ||
               from_.client == Client::kDead) {
      Release(i);
    }
  }

  void Create(int i) {
    for (int slab = 0; slab < kSlabs; ++slab) {
      if ((Alive(from_) & Bit(slab)) != 0) continue;
      Add("creates a slab", [&](State& s) {
        s.brokers[i].job = Job::kCreated;
        s.brokers[i].slab = static_cast<uint8_t>(slab);
        s.brokers[i].has |= Bit(slab);
      });
      return;
    }
  }

  void Put(int i) {
    if (!from_.brokers[i].connected) return;
    Add("puts the slab", [&](State& s) { s.brokers[i].job = Job::kPutting; });
  }

  void Journal(int i, Job next) {
    Add("journals", [&](State& s) {
      if (s.lease_record && s.record_slab != s.brokers[i].slab)
        s.fault = kServedTwice;
      s.lease_record = true;
      s.mapping_record = rules_.commits_at_once;
      s.record_slab = s.brokers[i].slab;
      s.brokers[i].job = rules_.commits_at_once ? next : Job::kHalf;
      s.brokers[i].knows = rules_.commits_at_once;
    });
  }

  void Send(int i, Job next) {
    Add("sends the slab", [&](State& s) {
      Deliver(s, s.brokers[i].slab, Client::kHasFd);
      s.brokers[i].job = next;
    });
  }

  void Announce(int i) {
    Add("announces the lease", [&](State& s) {
      Deliver(s, s.brokers[i].slab, Client::kHas);
      s.brokers[i].job = Job::kIdle;
    });
  }

  // Repeated frames say the same, and are taken once.
  static void Deliver(State& s, uint8_t slab, Client to) {
    if (s.client != Client::kAsks && s.client != Client::kHasFd) return;
    if (s.client == Client::kHasFd && s.client_slab != slab)
      s.fault = kServedTwice;
    s.client = to;
    s.client_slab = slab;
  }

  // The lease has ended: records, then the fd.
  void Release(int i) {
    const Broker& broker = from_.brokers[i];
    const bool recorded = from_.lease_record;
    const bool frees_now =
        rules_.frees_before_remove || broker.job == Job::kUnstored;
    if (recorded && frees_now) {
      Add("frees the records", [&](State& s) {
        s.lease_record = s.mapping_record = false;
        s.brokers[i].knows = false;
        s.brokers[i].job =
            rules_.frees_before_remove ? Job::kFreed : Job::kIdle;
      });
      return;
    }
    const bool stored = (broker.has | from_.kept) != 0;
    if (stored && (broker.connected || from_.kept == 0)) {
      Add("removes the slab", [&](State& s) {
        s.kept = 0;
        s.brokers[i].has = 0;
        s.brokers[i].job = s.lease_record ? Job::kUnstored : Job::kIdle;
      });
    } else if (!stored && from_.client == Client::kReleases) {
      Add("answers the release", [&](State& s) {
        s.client = Client::kDone;
        s.brokers[i].job = Job::kIdle;
      });
    }
  }

  void Refill(int i) {
    // A new keeper: it may serve another one first.
    if (!MayServeBroker(i)) return;
    Add("fills the new keeper", [&](State& s) {
      s.kept = rules_.refills ? s.brokers[i].has : 0;
      Claim(s, i);
      s.keeper_is_new = false;
      s.brokers[i].job = Job::kIdle;
      // A Put that was not answered is begun anew; so is all that needs one.
      const bool named = s.lease_record && s.record_slab == s.brokers[i].slab;
      if (!named && s.brokers[i].has != 0 && ClientWaits(s)) {
        s.brokers[i].job = Job::kPut;
      }
    });
  }
  static bool ClientWaits(const State& s) {
    return s.client == Client::kAsks || s.client == Client::kHasFd;
  }

  [[nodiscard]] bool MayServeBroker(int i) const {
    std::optional<Holder> holder;
    if (from_.holder >= 0) {
      holder = Holder{.process = ProcessOf(from_.holder),
                      .connected = from_.holder_connected,
                      .dead = from_.holder_dead};
    }
    return rules_.may_serve(holder, ProcessOf(i));
  }
  [[nodiscard]] Process ProcessOf(int i) const {
    if (world_.pids_are_hidden) return {.number = static_cast<uint64_t>(i) + 1};
    return {.pid = i + 1};
  }

  void Claim(State& s, int i) const {
    s.brokers[i].connected = true;
    if (!rules_.serving_claims) return;
    s.holder = static_cast<int8_t>(i);
    s.holder_connected = true;
    s.holder_dead = false;
  }

  void KeeperSteps() {
    for (int i = 0; i < kBrokers; ++i) {
      const Broker& broker = from_.brokers[i];
      if (broker.life == Life::kGreets && MayServeBroker(i)) {
        Add("the keeper serves a broker", [&](State& s) {
          s.brokers[i].life = Life::kServed;
          Claim(s, i);
        });
      }
      if (broker.life == Life::kUp && !broker.connected && !broker.stopped &&
          broker.job != Job::kRefilling && !world_.keeper_dies &&
          MayServeBroker(i)) {
        Add("a broker comes back", [&](State& s) { Claim(s, i); });
      }
      if (broker.alive() && broker.job == Job::kPutting && broker.connected) {
        Add("the keeper stores the slab", [&](State& s) {
          s.kept |= Bit(broker.slab);
          s.brokers[i].job = Job::kPut;
        });
      }
    }
    SeeDeath();
    if (world_.keeper_dies) LoseKeeper();
  }

  void SeeDeath() {
    if (from_.holder < 0) return;
    if (!from_.holder_dead && from_.brokers[from_.holder].life == Life::kGone) {
      Add("the keeper sees the death", [&](State& s) { s.holder_dead = true; });
    }
    if (!from_.holder_dead || from_.kept == 0) return;
    const LifeOptions at_once{.abandon_after = std::chrono::milliseconds(0),
                              .linger = std::chrono::milliseconds(0)};
    const LifeFacts facts{
        .broker_died = {},
        .living_peers = ClientLives(from_) && from_.client != Client::kDone
                            ? size_t{1}
                            : size_t{0},
        .last_peer_died = {}};
    if (!rules_.gives_back_at(at_once, facts).has_value()) return;
    Add("the keeper gives all back", [&](State& s) {
      s.kept = 0;
      s.holder = -1;
      // The journal is among what it kept.
      s.lease_record = s.mapping_record = false;
    });
  }

  // Once, while a broker is there that can fill the next one.
  void LoseKeeper() {
    if (from_.keeper_died || from_.keeper_is_new) return;
    for (int i = 0; i < kBrokers; ++i) {
      const Broker& broker = from_.brokers[i];
      if (broker.life != Life::kUp || !broker.connected || broker.stopped)
        continue;
      Add("the keeper is replaced", [&](State& s) {
        s.kept = 0;
        s.holder = -1;
        s.holder_connected = s.holder_dead = false;
        s.keeper_died = s.keeper_is_new = true;
        s.brokers[i].connected = false;
        s.brokers[i].job = Job::kRefilling;
      }).fault = true;
    }
  }

  void ClientSteps() {
    if (from_.client == Client::kHas) {
      Add("the client releases", [&](State& s) {
        s.client = Client::kReleases;
      }).fresh = true;
    }
    if (ClientLives(from_) && from_.client != Client::kDone) {
      Add("the client dies", [&](State& s) {
        s.client = Client::kDead;
      }).fault = true;
    }
  }

  const World& world_;
  const Rules& rules_;
  const State& from_;
  std::vector<Step> steps_;
};

}  // namespace

std::vector<Step> Steps(const World& world, const Rules& rules,
                        const State& from) {
  return Stepper(world, rules, from).All();
}

}  // namespace gmb::keeper::model
