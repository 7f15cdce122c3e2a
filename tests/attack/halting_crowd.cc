// Clients that halt at each step of their lives, all at once and again and
// again: one for each step, and when all of them stand or are dead, the next.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "tests/attack/attack.h"
#include "tests/attack/halt_steps.h"
#include "tests/end_with_parent.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kStand = absl::Milliseconds(200);
constexpr int kGlanceMilliseconds = 2;
using LifeOfOne = absl::Status (*)(Attack&);

// One process for each step. The kernel kills those that outlive this one.
class Crowd {
 public:
  explicit Crowd(Attack* attack) : attack_(attack) {}
  Crowd(const Crowd&) = delete;
  Crowd& operator=(const Crowd&) = delete;
  ~Crowd() {
    for (const pid_t client : clients_) {
      ::kill(client, SIGKILL);
      (void)::waitpid(client, nullptr, 0);
    }
  }

  void Start(LifeOfOne life, const std::string& step) {
    AttackOptions options = attack_->options();
    options.step = step;
    const pid_t parent = ::getpid();
    const pid_t client = ::fork();
    if (client == 0) {
      EndWithParent(parent);
      Attack own(options);
      (void)life(own);  // returns only where it was not served
      ::_exit(1);
    }
    if (client > 0) clients_.push_back(client);
  }

  // Until each has come to its step or has given up, or the attack ends.
  void AwaitHalts() {
    std::vector<pid_t> moving = clients_;
    while (!moving.empty() && attack_->GoesOn()) {
      for (size_t i = moving.size(); i-- > 0;) {
        if (Halted(moving[i])) moving.erase(moving.begin() + i);
      }
      if (!moving.empty()) ::poll(nullptr, 0, kGlanceMilliseconds);
    }
  }

 private:
  bool Halted(pid_t client) {
    int how = 0;
    if (::waitpid(client, &how, WNOHANG | WUNTRACED) <= 0) return false;
    if (WIFSTOPPED(how)) {
      attack_->Count("stopped");
      return true;
    }
    attack_->Count(WIFSIGNALED(how) ? "died" : "not_served");
    std::erase(clients_, client);
    return true;
  }

  Attack* const attack_;
  std::vector<pid_t> clients_;  // not reaped
};

absl::Status HaltEverywhere(Attack& attack, LifeOfOne life,
                            absl::Span<const char* const> steps) {
  while (attack.GoesOn()) {
    Crowd crowd(&attack);
    for (const char* const step : steps) crowd.Start(life, step);
    crowd.AwaitHalts();
    attack.Count("crowds");
    if (attack.options().then != "stop") continue;
    const absl::Time until = absl::Now() + kStand;
    while (absl::Now() < until && attack.GoesOn())
      ::poll(nullptr, 0, kGlanceMilliseconds);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status HaltingCrowd(Attack& attack) {
  return HaltEverywhere(attack, Halts, kStepsOfALife);
}

absl::Status HaltingCrowdInMoves(Attack& attack) {
  return HaltEverywhere(attack, HaltsInMoves, kStepsOfMoves);
}

}  // namespace gmb::attack
