#ifndef GMB_TESTS_KEEPER_HANDOVER_EXPLORER_H_
#define GMB_TESTS_KEEPER_HANDOVER_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/keeper/handover_model.h"

namespace gmb::keeper::model {

// Visits every state that a world of the hand-over can reach.
class Explorer {
 public:
  Explorer(const World& world, const Rules& rules)
      : world_(world), rules_(rules) {}

  // Stops at the first unsafe state, which it returns with the way there;
  // nothing if all are safe.
  std::optional<std::string> Reach();

  // From each state that was reached, some way of steps without faults has to
  // lead to one at rest: nothing is stuck, and nothing leaks. Otherwise returns
  // the way to a state from which none does.
  [[nodiscard]] std::optional<std::string> Trap() const;

  // Whether such a state was reached.
  using Is = std::function<bool(const State&)>;
  [[nodiscard]] bool Any(const Is& is) const;

  [[nodiscard]] size_t states() const { return visits_.size(); }
  [[nodiscard]] size_t steps() const { return steps_; }

 private:
  struct Visit {
    uint64_t key;
    uint32_t parent;
    const char* step;
  };
  [[nodiscard]] std::string WayTo(uint32_t at, const std::string& what) const;

  const World world_;
  const Rules rules_;
  std::vector<Visit> visits_;
  absl::flat_hash_map<uint64_t, uint32_t> index_;
  size_t steps_ = 0;
};

}  // namespace gmb::keeper::model

#endif  // GMB_TESTS_KEEPER_HANDOVER_EXPLORER_H_
