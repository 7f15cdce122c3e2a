#ifndef GMB_IPC_GATE_PAGE_H_
#define GMB_IPC_GATE_PAGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "ipc/gate_word.h"

namespace gmb::ipc {

// The start of a gate's page. The other process may write it at any time, and
// may write anything.
struct alignas(64) GateCells {
  std::atomic<uint64_t> word;
  // CLOCK_MONOTONIC, as exact as its coarse form (some 4 ms), when the last
  // scope went out; written by the client before the word. A hint.
  std::atomic<uint64_t> left_at_ns;
  // Likewise, exactly, when a scope last found the gate parked; 0: never.
  std::atomic<uint64_t> woken_at_ns;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(sizeof(GateCells) == 64);

inline GateWord LookAtGate(const GateCells& cells) {
  return GateWord(cells.word.load(std::memory_order_acquire));
}

// Puts `next` in the place of `seen`. If another was faster, returns false and
// `seen` is what it wrote.
inline bool MoveGate(GateCells& cells, GateWord& seen, GateWord next) {
  uint64_t bits = seen.bits();
  const bool moved = cells.word.compare_exchange_strong(
      bits, next.bits(), std::memory_order_acq_rel, std::memory_order_acquire);
  if (!moved) seen = GateWord(bits);
  return moved;
}

// For the broker: the memory of a new page, holding kGateOff. Its size is
// sealed, so that no access to a mapping of it can fault. RESOURCE_EXHAUSTED
// when the system is out of memory or fds.
[[nodiscard]] absl::StatusOr<base::UniqueFd> CreateGatePage();

// A gate's page in this process's address space; unmapped when destroyed.
// Move-only. Not inherited by forked children, and kept out of core dumps.
class GatePage {
 public:
  static constexpr size_t kBytes = 4096;

  // `fd` may be closed afterwards. INVALID_ARGUMENT unless it is a memfd of
  // kBytes that can neither shrink nor grow.
  [[nodiscard]] static absl::StatusOr<GatePage> Map(int fd);

  GatePage(GatePage&& other) noexcept
      : cells_(std::exchange(other.cells_, nullptr)) {}
  GatePage& operator=(GatePage&& other) noexcept {
    std::swap(cells_, other.cells_);
    return *this;
  }
  GatePage(const GatePage&) = delete;
  GatePage& operator=(const GatePage&) = delete;
  ~GatePage();

  [[nodiscard]] GateCells& cells() const { return *cells_; }

 private:
  explicit GatePage(GateCells* cells) : cells_(cells) {}

  GateCells* cells_;
};

}  // namespace gmb::ipc

#endif  // GMB_IPC_GATE_PAGE_H_
