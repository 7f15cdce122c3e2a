// `gmb run`: an allocation becomes a lease or a part of one.
#include "client/preload/memory.h"

#include <optional>
#include <string>

#include "base/round_up.h"
#include "client/preload/process_life.h"
#include "client/preload/program_gate.h"
#include "client/preload/say.h"
#include "client/preload/settings.h"

namespace gmb::preload {
namespace {

// A lease has whole granules.
constexpr uint64_t kGranuleBytes = uint64_t{2} << 20;

}  // namespace

Memory::Memory(const Driver& driver)
    : driver_(driver),
      contexts_(driver, &captures_),
      names_(driver),
      peers_(driver, &names_),
      broker_(&contexts_,
              [this](const std::string& device, uint64_t bytes) {
                kept_.Trim(device, bytes);
              }),
      exports_(driver, &broker_, &allocations_),
      kept_(&captures_, KeepingHooks()),
      returns_({.driver = driver,
                .names = names_,
                .broker = broker_,
                .allocations = allocations_,
                .exports = exports_,
                .kept = kept_}),
      sweeper_({.driver = driver,
                .captures = captures_,
                .contexts = contexts_,
                .allocations = allocations_,
                .freed = freed_,
                .kept = kept_,
                .returns = returns_}) {}

KeptMemory::Hooks Memory::KeepingHooks() {
  return {
      .release = [this](const LeaseRange& lease) { returns_.Release(lease); },
      .serves =
          [this](const LeaseRange& lease) {
            return !ProgramGate::IsAway() && broker_.Lives(lease);
          },
      .tell = [this](const std::string& uuid,
                     uint64_t bytes) { broker_.SetTrimmable(uuid, bytes); }};
}

Answer Memory::Allocate(CUdevice device, uint64_t bytes, CUdeviceptr* address) {
  return AllocateFrom({.device = device, .home = contexts_.HomeOn(device)},
                      bytes, address);
}

Answer Memory::AllocateFrom(const Source& source, uint64_t bytes,
                            CUdeviceptr* address) {
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  if (bytes > kLargestBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  sweeper_.Sweep();
  uint64_t given_back = 0;  // by this thread, or by another one meanwhile
  const WaitLeft left(TheSettings().wait_ms, WaitLeft::Clock::now());
  const auto allocate = [&] {
    given_back = returns_.count();
    return AllocateOnce(source, bytes, left, address);
  };
  Answer answer = allocate();
  if (answer != CUDA_ERROR_OUT_OF_MEMORY) return answer;
  // First what nobody has to wait for: the device may be at work for long.
  kept_.MakeRoom(source.device, kLargestBytes);
  if (returns_.count() != given_back) answer = allocate();
  if (answer != CUDA_ERROR_OUT_OF_MEMORY) return answer;
  sweeper_.ReleaseKept();
  return returns_.count() == given_back ? answer : allocate();
}

Answer Memory::AllocateOnce(const Source& source, uint64_t bytes,
                            const WaitLeft& left, CUdeviceptr* address) {
  return AnswerOf(bytes < kSmallestLeaseBytes
                      ? AllocateSmall(source, bytes, left, address)
                      : AllocateLarge(source, bytes, left, address));
}

Outcome Memory::Acquire(CUdevice device, uint64_t bytes, const WaitLeft& left,
                        LeaseRange* lease) {
  const auto acquire = [&](const PeerDevices::Uuids& peers) {
    return broker_.Acquire(names_.UuidOf(device), peers, bytes,
                           left.MillisecondsAt(WaitLeft::Clock::now()), lease);
  };
  const PeerDevices::Uuids peers = peers_.Of(device);
  const Outcome outcome = acquire(peers);
  if (outcome != Outcome::kNotMapped || peers.empty()) return outcome;
  const Outcome alone = acquire({});
  if (alone != Outcome::kDone) return alone;
  peers_.Forsake(device);
  SayAlways(
      "the driver does not map leased memory for other GPUs than its own: "
      "what this process does with it on another GPU fails. Give the process "
      "one GPU (CUDA_VISIBLE_DEVICES), or run it without `gmb run`");
  return alone;
}

Outcome Memory::AllocateLarge(const Source& source, uint64_t bytes,
                              const WaitLeft& left, CUdeviceptr* address) {
  const std::optional<LeaseRange> kept =
      kept_.Take(source.device, base::RoundUp(bytes, kGranuleBytes));
  LeaseRange lease = kept.value_or(LeaseRange());
  if (!kept.has_value()) {
    kept_.MakeRoom(source.device, bytes);
    if (const Outcome outcome = Acquire(source.device, bytes, left, &lease);
        outcome != Outcome::kDone) {
      return outcome;
    }
  }
  allocations_.AddLarge(source, bytes, lease);
  *address = lease.start;
  return Outcome::kDone;
}

Outcome Memory::AllocateSmall(const Source& source, uint64_t bytes,
                              const WaitLeft& left, CUdeviceptr* address) {
  if (const auto start = allocations_.AddSmall(source, bytes)) {
    *address = *start;
    return Outcome::kDone;
  }
  LeaseRange chunk;
  if (const Outcome outcome =
          Acquire(source.device, SmallBlocks::kChunkBytes, left, &chunk);
      outcome != Outcome::kDone) {
    return outcome;
  }
  *address = allocations_.AddSmallIn(chunk, source, bytes);
  return Outcome::kDone;
}

Answer Memory::Free(CUdeviceptr address) {
  bool ours = false;
  const std::optional<Block> block = allocations_.Take(address, &ours);
  if (!block.has_value()) {
    if (ours) return CUDA_ERROR_INVALID_VALUE;  // freed already, or its middle
    return std::nullopt;
  }
  if (Exiting()) return CUDA_SUCCESS;
  {
    const SynchronizingTurn turn(&captures_);
    if (!turn.granted()) {
      freed_.Add(*block);
      return CUDA_SUCCESS;
    }
    if (const CUresult result =
            contexts_.Synchronize(block->device, block->home);
        result != CUDA_SUCCESS) {
      allocations_.PutBack(*block);
      return result;
    }
    returns_.GiveBack(*block, LeaseReturns::Then::kKeep);
  }
  sweeper_.Sweep();
  return CUDA_SUCCESS;
}

}  // namespace gmb::preload
