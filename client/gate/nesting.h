#ifndef GMB_CLIENT_GATE_NESTING_H_
#define GMB_CLIENT_GATE_NESTING_H_

#include <array>
#include <cstdint>

namespace gmb::internal {

// How many scopes of which gates the calling thread is in.
class Nesting {
 public:
  // Gates whose scopes one thread can be in at once.
  static constexpr int kMostGates = 8;

  // This thread's count for the gate, which starts at zero and belongs to the
  // gate for as long as it is more. Null when the thread is in scopes of
  // kMostGates others. `gate` is never used for another gate again.
  static uint32_t* Depth(uint64_t gate) {
    Entry& first = entries[0];
    if (first.gate == gate) return &first.depth;
    return Find(gate);
  }

 private:
  struct Entry {
    uint64_t gate;
    uint32_t depth;
  };

  static uint32_t* Find(uint64_t gate) {
    for (Entry& entry : entries) {
      if (entry.gate == gate) return &entry.depth;
    }
    for (Entry& entry : entries) {
      if (entry.depth == 0) {
        entry.gate = gate;
        return &entry.depth;
      }
    }
    return nullptr;
  }

  // Without constructor and destructor: access needs no guard.
  static inline constinit thread_local std::array<Entry, kMostGates> entries{};
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_NESTING_H_
