// `gmb run`: what the program has freed, until it goes back.
#include "client/preload/freed_blocks.h"

namespace gmb::preload {

using base::MutexLock;

void FreedBlocks::Add(const OrderedFree& freed) {
  const MutexLock lock(&mu_);
  ordered_.Add(freed);
}

void FreedBlocks::Add(const Block& freed) {
  const MutexLock lock(&mu_);
  unordered_.push_back(freed);
}

std::optional<OrderedFree> FreedBlocks::TakeFit(const Driver& driver,
                                                CUdevice device,
                                                uint64_t held_bytes,
                                                CUstream stream) {
  const MutexLock lock(&mu_);
  return ordered_.TakeFit(driver, device, held_bytes, stream);
}

FreedBlocks::InHand FreedBlocks::TakeTicket() {
  in_hand_.insert(next_ticket_);
  return {this, next_ticket_++};
}

void FreedBlocks::Gone(uint64_t ticket) {
  const MutexLock lock(&mu_);
  in_hand_.erase(ticket);
  given_.NotifyAll();
}

std::optional<FreedBlocks::Taken> FreedBlocks::TakeDue(const Driver& driver,
                                                       TimePoint now) {
  const MutexLock lock(&mu_);
  std::vector<Block> blocks = std::exchange(unordered_, {});
  std::vector<OrderedFree> old = ordered_.TakeOld(driver, now);
  if (blocks.empty() && old.empty()) return std::nullopt;
  return Taken{.blocks = std::move(blocks),
               .ordered = std::move(old),
               .in_hand = TakeTicket()};
}

std::optional<FreedBlocks::Taken> FreedBlocks::TakeSurplus(
    const Driver& driver, const SurplusOf& surplus_of,
    uint64_t synchronisations) {
  const MutexLock lock(&mu_);
  std::vector<OrderedFree> taken = ordered_.TakeSurplus(
      driver, surplus_of(ordered_.HeldOfPools()), synchronisations);
  if (taken.empty()) return std::nullopt;
  return Taken{
      .blocks = {}, .ordered = std::move(taken), .in_hand = TakeTicket()};
}

FreedBlocks::Taken FreedBlocks::TakeAll(TimePoint until) {
  const MutexLock lock(&mu_);
  const uint64_t arrived = next_ticket_;
  while (!in_hand_.empty() && *in_hand_.begin() < arrived &&
         std::chrono::steady_clock::now() < until) {
    given_.WaitUntil(&mu_, until);
  }
  return {.blocks = std::exchange(unordered_, {}),
          .ordered = ordered_.TakeAll(),
          .in_hand = TakeTicket()};
}

void FreedBlocks::PutBack(const Taken& taken) {
  const MutexLock lock(&mu_);
  for (const OrderedFree& one : taken.ordered) {
    if (one.event != nullptr) {
      ordered_.Add(one);
    } else {
      unordered_.push_back(one.block);
    }
  }
  unordered_.insert(unordered_.end(), taken.blocks.begin(), taken.blocks.end());
}

void FreedBlocks::TakeDoneOf(const Driver& driver, CUcontext context) {
  std::vector<OrderedFree> done;
  {
    const MutexLock lock(&mu_);
    done = ordered_.TakeDoneOf(driver, context);
    for (OrderedFree& one : done) {
      one.block.home = {.kind = HomeContext::Kind::kEnded};
      unordered_.push_back(one.block);
    }
  }
  for (const OrderedFree& one : done) driver.cuEventDestroy_v2(one.event);
}

void FreedBlocks::Ended(const HomeContext& home) {
  const MutexLock lock(&mu_);
  for (Block& block : unordered_) {
    if (block.home == home) block.home = {.kind = HomeContext::Kind::kEnded};
  }
}

// Work that uses a block may be on other streams too, which the one that it was
// freed on was to wait for: so the device is synchronised.
void FreedBlocks::ForgetEventsOf(const Driver& driver, CUcontext context,
                                 bool lives) {
  std::vector<OrderedFree> of_it;
  {
    const MutexLock lock(&mu_);
    of_it = context == nullptr ? ordered_.TakeAll() : ordered_.TakeOf(context);
    for (const OrderedFree& one : of_it) unordered_.push_back(one.block);
  }
  if (!lives) return;
  for (const OrderedFree& one : of_it) driver.cuEventDestroy_v2(one.event);
}

}  // namespace gmb::preload
