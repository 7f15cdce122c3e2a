#ifndef GMB_TESTS_CLIENT_GATE_GATE_EXPLORER_H_
#define GMB_TESTS_CLIENT_GATE_GATE_EXPLORER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "tests/client/gate/gate_model.h"

namespace gmb::internal::model {

// Visits every state that the model can reach from a new gate.
class Explorer {
 public:
  explicit Explorer(const Rules& rules) : rules_(rules) {}

  // Stops at the first unsafe state or step, which it returns with the way
  // there; nothing if all are safe.
  std::optional<std::string> Reach();

  // Out of each state that was reached, follows only the steps that `follow`
  // allows, in any order. All such ways have to end, and to end in a state of
  // which `good` is true; otherwise returns the way to one that does not.
  using Follow = std::function<bool(const Step&)>;
  using Good = std::function<bool(const State&)>;
  std::optional<std::string> AllEnd(const Follow& follow, const Good& good);

  // Whether such a state was reached.
  [[nodiscard]] bool Any(const Good& is) const;

  [[nodiscard]] size_t states() const { return visits_.size(); }
  [[nodiscard]] size_t steps() const { return steps_; }

 private:
  struct Visit {
    uint64_t key;
    uint32_t parent;
    const char* step;
  };
  enum class Mark : uint8_t { kNew, kOpen, kDone };

  std::vector<uint32_t> Successors(uint32_t at, const Follow& follow) const;
  std::string WayTo(uint32_t at, const std::string& what) const;

  const Rules rules_;
  std::vector<Visit> visits_;
  absl::flat_hash_map<uint64_t, uint32_t> index_;
  size_t steps_ = 0;
};

}  // namespace gmb::internal::model

#endif  // GMB_TESTS_CLIENT_GATE_GATE_EXPLORER_H_
