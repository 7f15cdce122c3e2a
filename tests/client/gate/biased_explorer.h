#ifndef GMB_TESTS_CLIENT_GATE_BIASED_EXPLORER_H_
#define GMB_TESTS_CLIENT_GATE_BIASED_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/client/gate/biased_model.h"

namespace gmb::internal::biased {

// Visits every state that one world of the biased gate can reach.
class Explorer {
 public:
  Explorer(const World& world, Broken broken)
      : world_(world), broken_(broken) {}

  // Stops at the first unsafe state or step, which it returns with the way
  // there; nothing if all are safe.
  std::optional<std::string> Reach();

  // From each state of which `from` is true, some way of steps that `follow`
  // allows has to lead to a state of which `good` is true: nothing is ever
  // stuck, whatever the order. Otherwise returns the way to a state from which
  // none does.
  using Is = std::function<bool(const State&)>;
  using Follow = std::function<bool(const Step&)>;
  std::optional<std::string> Trap(const Is& from, const Follow& follow,
                                  const Is& good) const;

  // Whether such a state was reached.
  [[nodiscard]] bool Any(const Is& is) const;

  [[nodiscard]] size_t states() const { return visits_.size(); }

 private:
  // More would be a mistake in the model, and must not fill the machine.
  static constexpr size_t kMostStates = 2'000'000;

  struct Visit {
    uint64_t key;
    uint32_t parent;
    uint32_t step;  // of names_
  };

  std::string WayTo(uint32_t at, const std::string& what) const;
  uint32_t StepNumber(const char* name);

  const World world_;
  const Broken broken_;
  std::vector<Visit> visits_;
  std::vector<const char*> names_;
  absl::flat_hash_map<uint64_t, uint32_t> index_;
};

}  // namespace gmb::internal::biased

#endif  // GMB_TESTS_CLIENT_GATE_BIASED_EXPLORER_H_
