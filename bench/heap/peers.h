#ifndef GMB_BENCH_HEAP_PEERS_H_
#define GMB_BENCH_HEAP_PEERS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "device/handle.h"
#include "gmb/client.h"

namespace gmb::bench {

// An allocator that is measured. Thread-safe.
class Peer {
 public:
  virtual ~Peer() = default;
  [[nodiscard]] virtual std::string name() const = 0;
  // Null when it has no memory.
  [[nodiscard]] virtual void* Allocate(uint64_t bytes, void* stream) = 0;
  // `bytes` is what was asked for.
  virtual void Free(void* address, uint64_t bytes, void* stream) = 0;
  // The most that it ever took from the device; 0: it does not say.
  [[nodiscard]] virtual uint64_t PeakReservedBytes() = 0;
  // How often it asked for memory, and for how many pieces; 0: it does not say.
  [[nodiscard]] virtual uint64_t Questions() { return 0; }
  [[nodiscard]] virtual uint64_t Pieces() { return 0; }
};

// The names of `count` streams of the device; on the host, numbers.
class Streams {
 public:
  virtual ~Streams() = default;
  [[nodiscard]] virtual void* operator[](uint64_t number) const = 0;
  // Keep it in a thread other than the one that made them, for as long as it
  // uses them.
  [[nodiscard]] virtual std::shared_ptr<void> InThread() const = 0;
};

// A heap of its own.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Peer>> MakeHeapPeer(
    Client* client);
// A heap for each stream: they share no lock, and no memory. Only those streams
// may be named, and memory is freed on the stream it was allocated for.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Peer>> MakeHeapEachPeer(
    Client* client, const Streams& streams, uint64_t count);
// The others that this machine has for the device, each with a pool of its own:
// malloc for the host, cudaMallocAsync for a GPU where the runtime is found,
// otherwise cuMemAllocAsync; and RMM's pool in a build with RMM.
[[nodiscard]] std::vector<std::unique_ptr<Peer>> MakeOtherPeers(
    device::DeviceKind kind, const std::string& uuid);
[[nodiscard]] absl::StatusOr<std::unique_ptr<Streams>> MakeStreams(
    device::DeviceKind kind, const std::string& uuid, uint64_t count);

}  // namespace gmb::bench

#endif  // GMB_BENCH_HEAP_PEERS_H_
