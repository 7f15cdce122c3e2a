// Slabs kept ahead of need, whole ones and tails.
#include "broker/machine/ready_stock.h"

#include <algorithm>
#include <bit>
#include <iterator>

namespace gmb::broker {
namespace {

// All that stands ready is a little more than a whole slab: less than a third of
// what nobody has leased.
constexpr uint64_t kWholesPerStanding = 4;
// Two of those that are at most such a part of a whole one: 64 MiB of 1 GiB.
constexpr uint64_t kSmallParts = 16;

}  // namespace

void ReadyStock::Keep(const Slab& slab) {
  by_size_[slab.bytes].push_back(slab);
  ++count_;
  bytes_ += slab.bytes;
}

std::optional<Slab> ReadyStock::Take(uint64_t bytes) {
  const auto of_size = by_size_.find(bytes);
  if (of_size == by_size_.end()) return std::nullopt;
  const Slab slab = of_size->second.back();
  of_size->second.pop_back();
  if (of_size->second.empty()) by_size_.erase(of_size);
  --count_;
  bytes_ -= bytes;
  return slab;
}

std::optional<Slab> ReadyStock::TakeLargest() {
  if (by_size_.empty()) return std::nullopt;
  return Take(std::prev(by_size_.end())->first);
}

size_t ReadyStock::CountOf(uint64_t bytes) const {
  const auto of_size = by_size_.find(bytes);
  return of_size == by_size_.end() ? 0 : of_size->second.size();
}

void ReadyStock::Update(quota::Instant now, uint64_t left_bytes) {
  demand_.Pass(now);
  left_bytes_ = left_bytes;
}

// A program that begins grows in steps that double, and each of them is the
// first of its size.
uint64_t ReadyStock::StandingTails(uint64_t bytes) const {
  const uint64_t least = options_.least_standing_bytes;
  if (least == 0 || bytes >= options_.whole_bytes || bytes % least != 0 ||
      !std::has_single_bit(bytes / least)) {
    return 0;
  }
  return bytes <= options_.whole_bytes / kSmallParts ? 2 : 1;
}

uint64_t ReadyStock::AllStanding() const {
  uint64_t all = 0;
  for (uint64_t bytes = options_.least_standing_bytes;
       bytes > 0 && bytes < options_.whole_bytes; bytes *= 2) {
    all += StandingTails(bytes);
  }
  return all;
}

uint64_t ReadyStock::WantedStanding(uint64_t bytes) const {
  const bool enough_left =
      left_bytes_ >= kWholesPerStanding * options_.whole_bytes;
  return enough_left ? StandingTails(bytes) : 0;
}

uint64_t ReadyStock::WantedTails(uint64_t bytes) const {
  return std::max(AskedTails(bytes), WantedStanding(bytes));
}

std::vector<uint64_t> ReadyStock::Sizes() const {
  std::vector<uint64_t> sizes = demand_.Sizes();
  if (options_.least_standing_bytes == 0) return sizes;
  const auto asked = static_cast<ptrdiff_t>(sizes.size());
  for (uint64_t bytes = options_.least_standing_bytes;
       bytes < options_.whole_bytes; bytes *= 2) {
    const auto end = sizes.begin() + asked;
    if (std::find(sizes.begin(), end, bytes) == end) sizes.push_back(bytes);
  }
  return sizes;
}

uint64_t ReadyStock::AskedTails(uint64_t bytes) const {
  const uint64_t asked = demand_.SlabsOf(bytes);
  if (asked == 0 || bytes == options_.whole_bytes) return 0;
  const double share = static_cast<double>(asked) /
                       static_cast<double>(demand_.bytes()) *
                       static_cast<double>(left_bytes_);
  const uint64_t tails =
      demand_.slabs() - demand_.SlabsOf(options_.whole_bytes);
  // There is always room for those that stand ready.
  const uint64_t most =
      options_.most_tails - std::min(options_.most_tails, all_standing_);
  return std::min({asked, static_cast<uint64_t>(share), most * asked / tails});
}

bool ReadyStock::Wants(uint64_t bytes,
                       absl::Span<const uint64_t> making) const {
  if (count_ + making.size() >= options_.most_slabs) return false;
  if (bytes == options_.whole_bytes) return true;
  const auto whole = static_cast<size_t>(
      std::count(making.begin(), making.end(), options_.whole_bytes));
  if (Tails() + making.size() - whole >= options_.most_tails) return false;
  const auto more =
      static_cast<uint64_t>(std::count(making.begin(), making.end(), bytes));
  return CountOf(bytes) + more < WantedTails(bytes);
}

std::vector<uint64_t> ReadyStock::TailsToMake(uint64_t of_bytes,
                                              size_t most) const {
  std::vector<uint64_t> tails;
  uint64_t made = 0;
  for (const uint64_t bytes : Sizes()) {
    while (tails.size() < most && made + bytes <= of_bytes &&
           (tails.empty() || made + bytes <= options_.step_bytes) &&
           Wants(bytes, tails)) {
      tails.push_back(bytes);
      made += bytes;
    }
  }
  return tails;
}

bool ReadyStock::LacksTails() const {
  if (count_ >= options_.most_slabs) return false;
  bool lacks_standing = false;
  uint64_t lacking = 0;
  uint64_t room =
      options_.most_tails - std::min<uint64_t>(options_.most_tails, Tails());
  for (const uint64_t bytes : Sizes()) {
    const uint64_t wanted = WantedTails(bytes);
    const uint64_t more =
        std::min(room, wanted - std::min<uint64_t>(wanted, CountOf(bytes)));
    lacks_standing |= more > 0 && CountOf(bytes) < WantedStanding(bytes);
    lacking += bytes * more;
    room -= more;
  }
  return lacks_standing || lacking * 2 >= options_.whole_bytes;
}

std::vector<Slab> ReadyStock::TakeUnwanted(size_t most) {
  std::vector<Slab> unwanted;
  for (auto of_size = by_size_.begin(); of_size != by_size_.end();) {
    const uint64_t bytes = (of_size++)->first;  // Take may erase it
    if (bytes == options_.whole_bytes) continue;
    // Those that stand ready go when somebody needs their bytes.
    const uint64_t stay =
        2 * std::max(WantedTails(bytes), StandingTails(bytes));
    for (size_t there = CountOf(bytes); there > stay && unwanted.size() < most;
         --there) {
      if (const std::optional<Slab> slab = Take(bytes))
        unwanted.push_back(*slab);
    }
  }
  return unwanted;
}

}  // namespace gmb::broker
