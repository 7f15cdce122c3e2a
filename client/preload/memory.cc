// `gmb run`: an allocation becomes a lease or a part of one.
#include "client/preload/memory.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "base/round_up.h"
#include "client/preload/process_life.h"
#include "client/preload/serve.h"
#include "client/preload/settings.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {
namespace {

// A lease has whole granules.
constexpr uint64_t kGranuleBytes = uint64_t{2} << 20;

// So long a thread that is out of memory waits for others. They may wait for a
// lock of the program's that it has.
constexpr auto kPatience = std::chrono::seconds(2);

// As the broker writes it: "GPU-8f5c...".
std::string UuidText(const CUuuid& uuid) {
  constexpr std::array kHex = {'0', '1', '2', '3', '4', '5', '6', '7',
                               '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'};
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof(uuid.bytes); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    const auto byte = static_cast<unsigned char>(uuid.bytes[i]);
    text += kHex[byte >> 4U];
    text += kHex[byte & 15U];
  }
  return text;
}

}  // namespace

// Without a broker CUDA has a word of its own: a daemon that it needs is not
// there (cudaErrorSystemNotReady).
Answer AnswerOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return CUDA_SUCCESS;
    case Outcome::kNoMemory:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Outcome::kNoBroker:
      if (TheSettings().native_without_broker) return std::nullopt;
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kTurnedAway:  // the fallback is not a way past a refusal
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kNotOffered:
      break;
  }
  return std::nullopt;
}

const std::string& Memory::UuidOf(CUdevice device) {
  CUuuid uuid{};
  {
    const base::MutexLock lock(&mu_);
    if (const auto known = uuids_.find(device); known != uuids_.end()) {
      return known->second;
    }
  }
  const bool found = driver_.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS;
  const base::MutexLock lock(&mu_);
  return uuids_.emplace(device, found ? UuidText(uuid) : "").first->second;
}

Answer Memory::Allocate(CUdevice device, uint64_t bytes, CUdeviceptr* address) {
  return AllocateFrom({.device = device}, bytes, address);
}

Answer Memory::AllocateFrom(const Source& source, uint64_t bytes,
                            CUdeviceptr* address) {
  if (Exiting()) return CUDA_ERROR_DEINITIALIZED;
  if (bytes > kLargestBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  Sweep();
  const uint64_t given_back = GivenBack();
  const Answer answer = AllocateOnce(source, bytes, address);
  if (answer != CUDA_ERROR_OUT_OF_MEMORY) return answer;
  ReleaseKept();
  // By this thread, or by another one meanwhile.
  if (GivenBack() == given_back) return answer;
  return AllocateOnce(source, bytes, address);
}

uint64_t Memory::GivenBack() {
  const base::MutexLock lock(&mu_);
  return given_back_;
}

Answer Memory::AllocateOnce(const Source& source, uint64_t bytes,
                            CUdeviceptr* address) {
  return AnswerOf(bytes < kSmallestLeaseBytes
                      ? AllocateSmall(source, bytes, address)
                      : AllocateLarge(source, bytes, address));
}

void Memory::Served(const Source& source, Block block) {
  block.device = source.device;
  if (source.pool != nullptr) block.pool = pools_.NameOf(source.pool);
  live_.Add(block);
  pools_.Took(block);
}

void Memory::PutBack(const Block& block) {
  live_.Add(block);
  pools_.TookBack(block);
}

Outcome Memory::AllocateLarge(const Source& source, uint64_t bytes,
                              CUdeviceptr* address) {
  const std::optional<LeaseRange> kept =
      kept_.Take(source.device, base::RoundUp(bytes, kGranuleBytes));
  LeaseRange lease = kept.value_or(LeaseRange());
  if (!kept.has_value()) {
    kept_.MakeRoom(source.device, bytes);
    if (const Outcome outcome =
            broker_.Acquire(UuidOf(source.device), bytes, &lease);
        outcome != Outcome::kDone) {
      return outcome;
    }
  }
  const base::MutexLock lock(&mu_);
  live_.AddRange(lease);
  leased_from_.insert(source.device);
  Served(source, {.start = lease.start, .bytes = bytes, .lease = lease});
  *address = lease.start;
  return Outcome::kDone;
}

Outcome Memory::AllocateSmall(const Source& source, uint64_t bytes,
                              CUdeviceptr* address) {
  const auto take = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    const std::optional<uint64_t> start = small_[source.device].Take(bytes);
    if (!start.has_value()) return false;
    Served(source, {.start = *start, .bytes = bytes, .lease = {}});
    *address = *start;
    return true;
  };
  {
    const base::MutexLock lock(&mu_);
    if (take()) return Outcome::kDone;
  }
  LeaseRange chunk;
  if (const Outcome outcome = broker_.Acquire(UuidOf(source.device),
                                              SmallBlocks::kChunkBytes, &chunk);
      outcome != Outcome::kDone) {
    return outcome;
  }
  const base::MutexLock lock(&mu_);
  live_.AddRange(chunk);
  leased_from_.insert(source.device);
  small_[source.device].AddChunk(chunk);
  take();
  return Outcome::kDone;
}

bool Memory::Contains(CUdeviceptr address) {
  const base::MutexLock lock(&mu_);
  return live_.InRange(address);
}

std::optional<CUdevice> Memory::DeviceOf(CUdeviceptr address) {
  const base::MutexLock lock(&mu_);
  const Block* const block = live_.Find(address);
  if (block == nullptr) return std::nullopt;
  return block->device;
}

std::optional<Block> Memory::TakeLive(CUdeviceptr address, bool* ours) {
  const base::MutexLock lock(&mu_);
  std::optional<Block> block = live_.Take(address);
  *ours = block.has_value() || live_.InRange(address);
  if (block.has_value()) pools_.Freed(*block);
  return block;
}

Answer Memory::Free(CUdeviceptr address) {
  bool ours = false;
  const std::optional<Block> block = TakeLive(address, &ours);
  if (!block.has_value()) {
    if (ours) return CUDA_ERROR_INVALID_VALUE;  // freed already, or its middle
    return std::nullopt;
  }
  if (Exiting()) return CUDA_SUCCESS;
  {
    const SynchronizingTurn turn(&captures_);
    if (!turn.granted()) {
      const base::MutexLock lock(&mu_);
      unordered_.push_back(*block);
      return CUDA_SUCCESS;
    }
    if (const CUresult result = driver_.Synchronize(block->device);
        result != CUDA_SUCCESS) {
      const base::MutexLock lock(&mu_);
      PutBack(*block);
      return result;
    }
    GiveBack(*block, Then::kKeep);
  }
  Sweep();
  return CUDA_SUCCESS;
}

void Memory::GiveBack(const Block& block, Then then) {
  std::optional<LeaseRange> whole = block.lease;
  {
    const base::MutexLock lock(&mu_);
    pools_.GaveBack(block);
    if (!whole.has_value()) {
      whole = small_[block.device].Give(block.start, block.bytes);
      if (!whole.has_value()) ++given_back_;
    }
  }
  if (!whole.has_value()) return;
  if (then == Then::kKeep && block.lease.has_value() && !whole->shared) {
    kept_.Keep(block.device, UuidOf(block.device), *whole);
  } else {
    Release(*whole);
  }
}

void Memory::GiveBack(const std::vector<OrderedFree>& freed) {
  for (const OrderedFree& one : freed) {
    if (one.event != nullptr) driver_.cuEventDestroy_v2(one.event);
    GiveBack(one.block);
  }
}

// Off the books first: once it is unmapped, its addresses may be another's.
void Memory::Release(const LeaseRange& lease) {
  if (lease.asked != 0) {
    broker_.Forget(lease);
  } else if (lease.start == 0) {
    TheVirtualMemory(driver_).GoBack(lease);
  } else {
    {
      const base::MutexLock lock(&mu_);
      live_.RemoveRange(lease);
      exported_.erase(lease.handle);
    }
    BrokerLink::Release(lease);
  }
  const base::MutexLock lock(&mu_);
  ++given_back_;
}

KeptMemory::Hooks Memory::KeepingHooks() {
  return {
      .release = [this](const LeaseRange& lease) { Release(lease); },
      .lives = [this](const LeaseRange& lease) { return broker_.Lives(lease); },
      .tell = [this](const std::string& uuid,
                     uint64_t bytes) { broker_.SetTrimmable(uuid, bytes); }};
}

// Another thread that is out of memory waits for it.
class Memory::InHand {
 public:
  explicit InHand(Memory* memory) ABSL_EXCLUSIVE_LOCKS_REQUIRED(memory->mu_)
      : memory_(*memory), ticket_(memory->next_ticket_++) {
    memory_.in_hand_.insert(ticket_);
  }
  ~InHand() {
    const base::MutexLock lock(&memory_.mu_);
    memory_.in_hand_.erase(ticket_);
    memory_.given_.NotifyAll();
  }
  InHand(const InHand&) = delete;
  InHand& operator=(const InHand&) = delete;

 private:
  Memory& memory_;
  const uint64_t ticket_;
};

void Memory::AwaitInHand(std::chrono::steady_clock::time_point until) {
  const uint64_t arrived = next_ticket_;
  while (!in_hand_.empty() && *in_hand_.begin() < arrived &&
         std::chrono::steady_clock::now() < until) {
    given_.WaitUntil(&mu_, until);
  }
}

// Events as well: their streams may be of other contexts and devices.
bool Memory::Await(const std::vector<CUdevice>& devices,
                   std::vector<OrderedFree>* freed) {
  for (OrderedFree& one : *freed) {
    const CUresult result = driver_.cuEventSynchronize(one.event);
    if (IsLost(result)) {
      one.event = nullptr;
    } else if (result != CUDA_SUCCESS) {
      return false;
    }
  }
  return std::all_of(devices.begin(), devices.end(), [this](CUdevice device) {
    return driver_.Synchronize(device) == CUDA_SUCCESS;
  });
}

bool Memory::ReleaseKept() {
  const uint64_t before = GivenBack();
  GiveAllBack();
  return GivenBack() != before;
}

// A call that gives nothing back here is out of memory: so it waits where
// another thread resets the device, say, but not for ever.
void Memory::GiveAllBack() {
  if (Exiting()) return;
  const auto until = std::chrono::steady_clock::now() + kPatience;
  const SynchronizingTurn turn(&captures_, until);
  if (!turn.granted()) return;
  std::vector<Block> blocks;
  std::vector<OrderedFree> ordered;
  std::vector<CUdevice> devices;
  std::optional<InHand> in_hand;
  {
    const base::MutexLock lock(&mu_);
    AwaitInHand(until);
    in_hand.emplace(this);
    blocks = std::exchange(unordered_, {});
    ordered = ordered_.TakeAll();
    for (const auto& [device, blocks_of_it] : small_) devices.push_back(device);
  }
  for (const Block& block : blocks) devices.push_back(block.device);
  for (const OrderedFree& one : ordered) devices.push_back(one.block.device);
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (!Await(devices, &ordered)) {
    const base::MutexLock lock(&mu_);
    for (const OrderedFree& one : ordered) {
      if (one.event != nullptr) {
        ordered_.Add(one);
      } else {
        unordered_.push_back(one.block);
      }
    }
    unordered_.insert(unordered_.end(), blocks.begin(), blocks.end());
    return;
  }
  GiveBack(ordered);
  for (const Block& block : blocks) GiveBack(block);
  std::vector<LeaseRange> reserves;
  {
    const base::MutexLock lock(&mu_);
    for (auto& [device, small] : small_) {
      if (const auto reserve = small.TakeReserve()) {
        reserves.push_back(*reserve);
      }
    }
  }
  for (const LeaseRange& reserve : reserves) Release(reserve);
  kept_.ReleaseAll();
}

void Memory::Sweep() {
  if (Exiting()) return;
  const SynchronizingTurn turn(&captures_);
  if (!turn.granted()) return;
  std::vector<Block> blocks;
  std::vector<OrderedFree> old;
  std::optional<InHand> in_hand;
  {
    const base::MutexLock lock(&mu_);
    blocks = std::exchange(unordered_, {});
    old = ordered_.TakeOld(driver_, std::chrono::steady_clock::now());
    if (blocks.empty() && old.empty()) return;
    in_hand.emplace(this);
  }
  const auto lost = std::partition(
      old.begin(), old.end(),
      [](const OrderedFree& one) { return one.event != nullptr; });
  for (auto it = lost; it != old.end(); ++it) blocks.push_back(it->block);
  old.erase(lost, old.end());
  for (const Block& block : blocks) {
    if (driver_.Synchronize(block.device) == CUDA_SUCCESS) {
      GiveBack(block);
    } else {
      const base::MutexLock lock(&mu_);
      unordered_.push_back(block);
    }
  }
  GiveBack(old);
}

}  // namespace gmb::preload
