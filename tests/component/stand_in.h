#ifndef GMB_TESTS_COMPONENT_STAND_IN_H_
#define GMB_TESTS_COMPONENT_STAND_IN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "base/unique_fd.h"

namespace gmb::component {

// Listens in the place of a broker's gRPC socket and answers nobody. At its end
// the broker's socket is back in its place.
class StandIn {
 public:
  // So many connections and one more can wait, as the kernel counts.
  StandIn(std::string path, int backlog);
  ~StandIn();
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  // Fills the backlog: who connects without waiting is refused from now on.
  void Crowd();
  // Ends the crowd, waits for the next connection, and closes it unread. False
  // when none comes.
  [[nodiscard]] bool TurnOneAway();
  // Takes all that wait, and keeps them open. How many they are.
  [[nodiscard]] size_t TakeAll();

 private:
  [[nodiscard]] base::UniqueFd Accept() const;

  const std::string path_;
  const std::string aside_;
  base::UniqueFd listener_;
  std::vector<base::UniqueFd> crowd_;
  std::vector<base::UniqueFd> taken_;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_STAND_IN_H_
