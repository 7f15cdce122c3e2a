#ifndef GMB_TESTS_ATTACK_ATTACK_FIXTURE_H_
#define GMB_TESTS_ATTACK_ATTACK_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "tests/attack/event_listener.h"
#include "tests/component/component_test.h"

namespace gmb::attack {

using component::Await;
using component::BrokerOptions;
using component::Program;

// Which options of sockets the broker's kernel knows.
enum class Kernel {
  kNewest,               // this machine's
  kNoPassRights,         // before 6.16: whoever sends fds is not stopped
  kNoPassRightsNoPidfd,  // before 6.5, too: whoever connects is a number alone
};

std::ostream& operator<<(std::ostream& out, Kernel kernel);

// A broker with three tenants: "mallory" attacks, "honest" has a session from
// before that leases all the time, as a process of its own, and of "other" new
// clients come. At the end the honest session has to have been served to its
// end, and nobody's session but mallory's to have been ended.
class AttackTest : public component::ComponentTest {
 protected:
  // Waits until everybody is served and the broker is calm. `honest_uid`: whose
  // process the honest tenant's is; 0: this one's.
  void Start(Kernel kernel = Kernel::kNewest, BrokerOptions options = {},
             unsigned honest_uid = 0);
  void TearDown() override;

  // In mallory's directory, unless `directory` says another. It goes on until
  // it is told to stop.
  [[nodiscard]] std::unique_ptr<Program> StartAttacker(
      std::vector<std::string> words, const std::string& directory = "");
  // Runs the attack until others have been served throughout for about two
  // seconds of it, then stops it, and waits until nothing is left of it.
  void ExpectHarmless(const std::vector<std::string>& words);
  // Others are served: a session from before, new ones, and operators.
  void ExpectOthersServed();
  // The attack has gone on for so many seconds; others are served meanwhile.
  void ServeDuring(Program& attacker, int seconds);
  static void Stop(Program& attacker);
  // Fds, threads and memory are those of before.
  void ExpectCalmAgain();
  // SIGTERM ends the broker in order while the attack goes on.
  void ExpectEndsInOrderDuring(const std::vector<std::string>& words);

  // Nothing of the pool is still held by those who gave it back.
  void ExpectAllReturned() const;

  [[nodiscard]] EventListener& events() { return *events_; }

 private:
  struct Held {
    size_t fds = 0;
    uint64_t threads = 0;
    uint64_t anonymous_bytes = 0;  // 0 where sanitizers count
  };
  friend std::ostream& operator<<(std::ostream& out, const Held& held);
  [[nodiscard]] Held Measure();
  [[nodiscard]] uint64_t HonestRounds() const;
  void StopHonest();

  std::unique_ptr<Program> honest_;
  std::unique_ptr<EventListener> events_;
  Held calm_;
  int attackers_ = 0;
};

}  // namespace gmb::attack

#endif  // GMB_TESTS_ATTACK_ATTACK_FIXTURE_H_
