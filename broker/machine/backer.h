#ifndef GMB_BROKER_MACHINE_BACKER_H_
#define GMB_BROKER_MACHINE_BACKER_H_

#include <cstdint>
#include <vector>

#include "broker/machine/host_desk.h"
#include "broker/machine/lookout.h"
#include "broker/machine/state.h"
#include "broker/machine/turn.h"
#include "quota/units.h"

namespace gmb::broker {

// Which parked memory is copied to the host pool ahead of need, and when. The
// host desk makes the copies.
class Backer {
 public:
  struct Below {
    Lookout& lookout;
    HostDesk& host;
  };
  Backer(State& state, const Below& below)
      : state_(state), lookout_(below.lookout), host_(below.host) {}

  // In every turn.
  void BackAhead(quota::Instant now, Turn& turn);

 private:
  [[nodiscard]] bool LookAfterTheOne(bool needed, quota::Instant now,
                                     Turn& turn);
  [[nodiscard]] bool BackNext(uint64_t available, quota::Instant now,
                              Turn& turn);
  void LookForMore(uint64_t available, quota::Instant now);
  [[nodiscard]] bool LookOn(quota::Instant now,
                            std::vector<quota::LeaseId>* some);

  State& state_;
  Lookout& lookout_;
  HostDesk& host_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_BACKER_H_
