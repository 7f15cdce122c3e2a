#include "bench/heap/peers.h"

#include <cstdlib>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "bench/heap/cuda_peers.h"
#include "bench/heap/rmm_peer.h"
#include "gmb/heap.h"

namespace gmb::bench {
namespace {

class HeapPeer final : public Peer {
 public:
  explicit HeapPeer(std::unique_ptr<Heap> heap) : heap_(std::move(heap)) {}
  std::string name() const override { return "gmb::Heap"; }
  void* Allocate(uint64_t bytes, void* stream) override {
    const absl::StatusOr<void*> got = heap_->Allocate(bytes, stream);
    return got.ok() ? *got : nullptr;
  }
  void Free(void* address, uint64_t /*bytes*/, void* stream) override {
    heap_->Free(address, stream).IgnoreError();
  }
  uint64_t PeakReservedBytes() override {
    return heap_->statistics().peak_leased_bytes;
  }
  uint64_t Questions() override { return heap_->statistics().questions; }
  uint64_t Pieces() override { return heap_->statistics().growths; }

 private:
  const std::unique_ptr<Heap> heap_;
};

class HeapEachPeer final : public Peer {
 public:
  absl::Status Make(Client* client, const Streams& streams, uint64_t count) {
    for (uint64_t i = 0; i < count; ++i) {
      absl::StatusOr<std::unique_ptr<Heap>> heap = Heap::Create(client);
      if (!heap.ok()) return heap.status();
      heaps_.emplace(streams[i], *std::move(heap));
    }
    return absl::OkStatus();
  }
  std::string name() const override { return "gmb::Heap, one a stream"; }
  void* Allocate(uint64_t bytes, void* stream) override {
    const absl::StatusOr<void*> got =
        heaps_.find(stream)->second->Allocate(bytes, stream);
    return got.ok() ? *got : nullptr;
  }
  void Free(void* address, uint64_t /*bytes*/, void* stream) override {
    heaps_.find(stream)->second->Free(address, stream).IgnoreError();
  }
  uint64_t PeakReservedBytes() override {
    uint64_t bytes = 0;
    for (const auto& [stream, heap] : heaps_)
      bytes += heap->statistics().peak_leased_bytes;
    return bytes;
  }

 private:
  absl::flat_hash_map<void*, std::unique_ptr<Heap>> heaps_;
};

class MallocPeer final : public Peer {
 public:
  std::string name() const override { return "malloc"; }
  void* Allocate(uint64_t bytes, void* /*stream*/) override {
    return std::malloc(bytes);
  }
  void Free(void* address, uint64_t /*bytes*/, void* /*stream*/) override {
    std::free(address);
  }
  uint64_t PeakReservedBytes() override { return 0; }
};

class Numbers final : public Streams {
 public:
  void* operator[](uint64_t number) const override {
    return reinterpret_cast<void*>(number);  // NOLINT: a name, not an address
  }
  std::shared_ptr<void> InThread() const override { return nullptr; }
};

}  // namespace

absl::StatusOr<std::unique_ptr<Peer>> MakeHeapPeer(Client* client) {
  absl::StatusOr<std::unique_ptr<Heap>> heap = Heap::Create(client);
  if (!heap.ok()) return heap.status();
  return std::make_unique<HeapPeer>(*std::move(heap));
}

absl::StatusOr<std::unique_ptr<Peer>> MakeHeapEachPeer(Client* client,
                                                       const Streams& streams,
                                                       uint64_t count) {
  auto peer = std::make_unique<HeapEachPeer>();
  if (absl::Status made = peer->Make(client, streams, count); !made.ok())
    return made;
  return peer;
}

std::vector<std::unique_ptr<Peer>> MakeOtherPeers(device::DeviceKind kind,
                                                  const std::string& uuid) {
  std::vector<std::unique_ptr<Peer>> peers;
  if (kind == device::DeviceKind::kHost) {
    peers.push_back(std::make_unique<MallocPeer>());
    return peers;
  }
  peers = MakeCudaPeers(uuid);
  if (std::unique_ptr<Peer> rmm = MakeRmmPeer(); rmm != nullptr)
    peers.push_back(std::move(rmm));
  return peers;
}

absl::StatusOr<std::unique_ptr<Streams>> MakeStreams(device::DeviceKind kind,
                                                     const std::string& uuid,
                                                     uint64_t count) {
  if (kind != device::DeviceKind::kHost) return MakeCudaStreams(uuid, count);
  return std::make_unique<Numbers>();
}

}  // namespace gmb::bench
