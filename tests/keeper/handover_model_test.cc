// Every interleaving of the hand-over, and proof that the explorer would see a
// broken rule: each rule is broken once.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <utility>

#include "tests/keeper/handover_explorer.h"

namespace gmb::keeper::model {
namespace {

constexpr World kBrokersDie{};
constexpr World kKeeperDies{.keeper_dies = true};
constexpr World kPidsAreHidden{.pids_are_hidden = true};

TEST(HandoverModel, EveryInterleavingIsSafeAndNothingIsStuckOrLeaks) {
  for (const World& world : {kBrokersDie, kKeeperDies, kPidsAreHidden}) {
    Explorer explorer(world, Rules{});
    const auto unsafe = explorer.Reach();
    ASSERT_FALSE(unsafe.has_value()) << *unsafe;
    std::printf("%zu states, %zu steps\n", explorer.states(), explorer.steps());
    const auto trap = explorer.Trap();
    EXPECT_FALSE(trap.has_value()) << *trap;
  }
}

TEST(HandoverModel, AKeyIsAState) {
  Explorer explorer(kBrokersDie, Rules{});
  ASSERT_FALSE(explorer.Reach().has_value());
  EXPECT_FALSE(explorer.Any([](const State& state) {
    return Encode(Decode(Encode(state))) != Encode(state);
  }));
}

// A situation that is never reached is not checked either.
TEST(HandoverModel, EverySituationThatMattersIsReached) {
  Explorer explorer(kBrokersDie, Rules{});
  ASSERT_FALSE(explorer.Reach().has_value());
  const std::pair<const char*, Explorer::Is> situations[] = {
      {"a stopped broker, and one that waits for its death",
       [](const State& s) {
         return s.brokers[0].stopped && s.brokers[1].life == Life::kGreets;
       }},
      {"one that hung up and lives, and one that waits",
       [](const State& s) {
         return s.holder == 0 && !s.holder_connected && !s.holder_dead &&
                s.brokers[0].life == Life::kUp &&
                s.brokers[1].life == Life::kGreets;
       }},
      {"two that wait for the same death",
       [](const State& s) {
         return s.holder_dead && s.brokers[1].life == Life::kGreets &&
                s.brokers[2].life == Life::kGreets;
       }},
      {"the third broker serves what the first has granted",
       [](const State& s) {
         return s.brokers[2].life == Life::kUp && s.brokers[2].knows &&
                s.brokers[1].life == Life::kGone && s.client == Client::kHas;
       }},
      {"a slab that is kept and that no record names",
       [](const State& s) {
         return s.holder_dead && s.kept != 0 && !s.lease_record;
       }},
      {"a record, and a client that was not told",
       [](const State& s) {
         return s.holder_dead && s.lease_record && s.client == Client::kAsks;
       }},
      {"all given back", [](const State& s) {
         return s.holder == -1 && s.brokers[0].life == Life::kGone &&
                s.client == Client::kDead;
       }}};
  for (const auto& [name, is] : situations) {
    EXPECT_TRUE(explorer.Any(is)) << name;
  }
}

// Expects the explorer to report rules of which one is broken.
void ExpectUnsafe(const World& world, const Rules& rules,
                  const std::string& what) {
  Explorer explorer(world, rules);
  const auto unsafe = explorer.Reach();
  ASSERT_TRUE(unsafe.has_value()) << "not seen: " << what;
  EXPECT_NE(unsafe->find(what), std::string::npos) << *unsafe;
}

TEST(BrokenHandoverModel, AHangUpThatIsTakenForADeath) {
  Rules rules;
  rules.may_serve = [](const std::optional<Holder>& holder, const Process&) {
    return !holder.has_value() || !holder->connected;
  };
  ExpectUnsafe(kBrokersDie, rules, "two living brokers have the fds");
}

TEST(BrokenHandoverModel, AnybodyIsServedOnceTheLastOneHasHungUp) {
  Rules rules;
  rules.may_serve = [](const std::optional<Holder>& holder, const Process&) {
    return !holder.has_value() || holder->dead || !holder->connected;
  };
  ExpectUnsafe(kBrokersDie, rules, "two living brokers have the fds");
}

// Pid 0 is that of every broker in another pid namespace.
TEST(BrokenHandoverModel, AllWhosePidsAreHiddenAreTakenForOne) {
  Rules rules;
  rules.may_serve = [](const std::optional<Holder>& holder,
                       const Process& process) {
    return !holder.has_value() || holder->dead ||
           (!holder->connected && holder->process.pid == process.pid);
  };
  ExpectUnsafe(kPidsAreHidden, rules, "two living brokers have the fds");
}

TEST(BrokenHandoverModel, OneWhosePidIsHiddenIsNotKnownAgain) {
  Rules rules;
  rules.may_serve = [](const std::optional<Holder>& holder,
                       const Process& process) {
    return !holder.has_value() || holder->dead ||
           (!holder->connected && process.pid > 0 &&
            holder->process.pid == process.pid);
  };
  Explorer explorer(kPidsAreHidden, rules);
  const auto unsafe = explorer.Reach();
  ASSERT_FALSE(unsafe.has_value()) << *unsafe;
  EXPECT_TRUE(explorer.Trap().has_value());
}

TEST(BrokenHandoverModel, TwoAreServedAfterOneDeath) {
  Rules rules;
  rules.serving_claims = false;
  ExpectUnsafe(kBrokersDie, rules, "two living brokers have the fds");
}

TEST(BrokenHandoverModel, AKeeperThatLetsGoWhenItsBrokerDies) {
  Rules rules;
  rules.keeps_after_death = false;
  ExpectUnsafe(kBrokersDie, rules, "what a client has is lost");
}

TEST(BrokenHandoverModel, AKeeperThatGivesBackWhileAPeerLives) {
  Rules rules;
  rules.gives_back_at = [](const LifeOptions& options, const LifeFacts& facts) {
    return GivesBackAt(
        options, {.broker_died = facts.broker_died, .last_peer_died = {}});
  };
  ExpectUnsafe(kBrokersDie, rules, "a client has a lease");
}

TEST(BrokenHandoverModel, JournalingBeforeThePutIsAcknowledged) {
  Rules rules;
  rules.awaits_put = false;
  ExpectUnsafe(kBrokersDie, rules, "what a client has is lost");
}

TEST(BrokenHandoverModel, JournalingBeforeStoring) {
  Rules rules;
  rules.stores_before_journal = false;
  ExpectUnsafe(kBrokersDie, rules, "a record without its slab");
}

TEST(BrokenHandoverModel, SendingBeforeJournaling) {
  Rules rules;
  rules.journals_before_send = false;
  ExpectUnsafe(kBrokersDie, rules, "a lease that nobody wrote down");
}

TEST(BrokenHandoverModel, RecordsThatBelongTogetherInTwoCommits) {
  Rules rules;
  rules.commits_at_once = false;
  ExpectUnsafe(kBrokersDie, rules, "half a commit");
}

TEST(BrokenHandoverModel, RemovingBeforeTheRecordIsFreed) {
  Rules rules;
  rules.frees_before_remove = false;
  ExpectUnsafe(kBrokersDie, rules, "a record without its slab");
}

TEST(BrokenHandoverModel, ARepeatedRequestThatIsCarriedOutAgain) {
  Rules rules;
  rules.answers_from_journal = false;
  ExpectUnsafe(kBrokersDie, rules, "a request is served twice");
}

TEST(BrokenHandoverModel, SlabsThatNobodyNamesAndNobodyDestroys) {
  Rules rules;
  rules.drops_unnamed = false;
  Explorer explorer(kBrokersDie, rules);
  const auto unsafe = explorer.Reach();
  ASSERT_FALSE(unsafe.has_value()) << *unsafe;
  EXPECT_TRUE(explorer.Trap().has_value());
}

TEST(BrokenHandoverModel, ANewKeeperThatIsNotFilled) {
  Rules rules;
  rules.refills = false;
  ExpectUnsafe(kKeeperDies, rules, "what a client has is lost");
}

// A new keeper is empty and knows of no broker: whoever asks first is served.
// That this is the one that lives is the work of its directory's lock.
TEST(BrokenHandoverModel, ABrokerWithoutTheLockTakesTheNewKeeper) {
  Rules rules;
  rules.takes_lock = false;
  ExpectUnsafe(kKeeperDies, rules, "two living brokers have the fds");
}

}  // namespace
}  // namespace gmb::keeper::model
