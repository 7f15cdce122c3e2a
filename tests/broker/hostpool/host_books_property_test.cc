#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <vector>

#include "broker/hostpool/host_books.h"

// Random reservations, placements, copies, ends and limits of a few tenants,
// beside a model that marks every granule of the pool with the lease that
// placed it and the lease that last filled it.

namespace gmb::broker {
namespace {

using device::HostExtent;
using Outcome = HostBooks::Outcome;

constexpr uint64_t kGranuleBytes = device::kHostPoolGranularityBytes;
constexpr uint64_t kGranules = 64;
constexpr uint64_t kCapacity = kGranules * kGranuleBytes;
constexpr uint64_t kTenants = 3;
constexpr uint64_t kLeases = 12;

struct ModelLease {
  uint64_t tenant = 0;
  uint64_t granules = 0;
  uint64_t fills = 0;  // of the granules, since they were placed; 0: untrue
  std::vector<HostExtent> place;
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed), books_(kCapacity) {
    std::fill(limits_.begin(), limits_.end(), kGranules);
  }

  void Step() {
    const quota::LeaseId id{1 + Below(kLeases)};
    switch (Below(6)) {
      case 0:
        return Reserve(id);
      case 1:
        return Place(id);
      case 2:
        return MarkTrue(id);
      case 3:
        books_.MarkUntrue(id);
        if (Has(id)) leases_[id].fills = 0;
        return;
      case 4:
        books_.Release(id);
        if (Has(id)) Unplace(&leases_[id]);
        leases_.erase(id);
        return;
      default:
        return SetLimit();
    }
  }

  void Check() {
    HostBooks::Amounts total;
    std::vector<HostBooks::Amounts> of(kTenants);
    for (const auto& [id, lease] : leases_) {
      const uint64_t bytes = lease.granules * kGranuleBytes;
      for (HostBooks::Amounts* sum : {&total, &of[lease.tenant]}) {
        sum->reserved_bytes += bytes;
        if (!lease.place.empty()) sum->placed_bytes += bytes;
        if (lease.fills != 0) sum->true_bytes += bytes;
      }
      CheckCopy(id, lease);
    }
    ExpectSame(books_.total(), total);
    for (uint64_t i = 0; i < kTenants; ++i) {
      ExpectSame(books_.of({i}), of[i]);
      EXPECT_EQ(books_.limit_bytes({i}), limits_[i] * kGranuleBytes);
    }
    EXPECT_LE(total.reserved_bytes, kCapacity);
    EXPECT_EQ(books_.unreserved_bytes(), kCapacity - total.reserved_bytes);
  }

 private:
  uint64_t Below(uint64_t bound) { return random_() % bound; }
  bool Has(quota::LeaseId id) const { return leases_.count(id) != 0; }

  uint64_t ReservedBy(uint64_t tenant) const {
    uint64_t granules = 0;
    for (const auto& [id, lease] : leases_) {
      if (lease.tenant == tenant) granules += lease.granules;
    }
    return granules;
  }

  void Reserve(quota::LeaseId id) {
    const uint64_t tenant = Below(kTenants);
    const uint64_t granules = 1 + Below(20);
    const bool fits = books_.HasRoomFor({tenant}, granules * kGranuleBytes);
    const HostBooks::Answer answer =
        books_.Reserve({tenant}, id, granules * kGranuleBytes);
    if (Has(id)) {
      EXPECT_EQ(answer.outcome, Outcome::kReserved);
      return;
    }
    EXPECT_EQ(fits, answer.outcome == Outcome::kReserved);
    const uint64_t left_of_limit =
        limits_[tenant] - std::min(limits_[tenant], ReservedBy(tenant));
    uint64_t left = kGranules;
    for (uint64_t i = 0; i < kTenants; ++i) left -= ReservedBy(i);
    if (granules > left_of_limit) {
      EXPECT_EQ(answer.outcome, Outcome::kTenantLimit);
      EXPECT_EQ(answer.deficit_bytes,
                (granules - left_of_limit) * kGranuleBytes);
    } else if (granules > left) {
      EXPECT_EQ(answer.outcome, Outcome::kPoolFull);
      EXPECT_EQ(answer.deficit_bytes, (granules - left) * kGranuleBytes);
    } else {
      EXPECT_EQ(answer.outcome, Outcome::kReserved);
      EXPECT_EQ(answer.deficit_bytes, 0u);
      leases_[id] = {.tenant = tenant, .granules = granules, .place = {}};
    }
    EXPECT_EQ(books_.HasRoom(id), Has(id));
  }

  void Place(quota::LeaseId id) {
    const std::vector<HostExtent> place = books_.Place(id);
    if (!Has(id) || leases_[id].fills != 0) {
      EXPECT_TRUE(place.empty());
      return;
    }
    ModelLease& lease = leases_[id];
    if (!lease.place.empty()) {
      EXPECT_EQ(place, lease.place);
      return;
    }
    uint64_t bytes = 0;
    lease.place = place;
    for (const HostExtent& extent : place) {
      ASSERT_EQ(extent.offset % kGranuleBytes, 0u);
      ASSERT_EQ(extent.bytes % kGranuleBytes, 0u);
      ASSERT_LE(extent.offset + extent.bytes, kCapacity);
      bytes += extent.bytes;
      for (uint64_t i = 0; i < extent.bytes / kGranuleBytes; ++i) {
        uint64_t& owner = owners_[extent.offset / kGranuleBytes + i];
        EXPECT_EQ(owner, 0u) << "two leases in one place";
        owner = id.value;
      }
    }
    EXPECT_EQ(bytes, lease.granules * kGranuleBytes);
  }

  void MarkTrue(quota::LeaseId id) {
    books_.MarkTrue(id);
    if (!Has(id) || leases_[id].place.empty()) return;
    leases_[id].fills = ++fills_;
    for (const HostExtent& extent : leases_[id].place) {
      std::fill_n(filled_.begin() + extent.offset / kGranuleBytes,
                  extent.bytes / kGranuleBytes, fills_);
    }
  }

  void Unplace(ModelLease* lease) {
    for (const HostExtent& extent : lease->place) {
      std::fill_n(owners_.begin() + extent.offset / kGranuleBytes,
                  extent.bytes / kGranuleBytes, 0);
    }
    lease->place.clear();
    lease->fills = 0;
  }

  void SetLimit() {
    const uint64_t tenant = Below(kTenants);
    limits_[tenant] = Below(kGranules + 1);
    books_.SetLimit({tenant}, limits_[tenant] * kGranuleBytes);
  }

  // A copy that the books call true holds what this lease filled in last.
  void CheckCopy(quota::LeaseId id, const ModelLease& lease) {
    const std::vector<HostExtent>* const copy = books_.TrueCopy(id);
    ASSERT_EQ(copy != nullptr, lease.fills != 0);
    if (copy == nullptr) return;
    EXPECT_EQ(*copy, lease.place);
    for (const HostExtent& extent : *copy) {
      for (uint64_t i = 0; i < extent.bytes / kGranuleBytes; ++i) {
        EXPECT_EQ(filled_[extent.offset / kGranuleBytes + i], lease.fills);
      }
    }
  }

  static void ExpectSame(const HostBooks::Amounts& a,
                         const HostBooks::Amounts& b) {
    EXPECT_EQ(a.reserved_bytes, b.reserved_bytes);
    EXPECT_EQ(a.placed_bytes, b.placed_bytes);
    EXPECT_EQ(a.true_bytes, b.true_bytes);
  }

  std::mt19937 random_;
  HostBooks books_;
  std::map<quota::LeaseId, ModelLease> leases_;
  std::array<uint64_t, kTenants> limits_;
  std::array<uint64_t, kGranules> owners_{};
  std::array<uint64_t, kGranules> filled_{};
  uint64_t fills_ = 0;
};

TEST(HostBooksProperty, RoomIsNeverSharedNorMoreThanThereIs) {
  for (unsigned seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Model model(seed);
    for (int i = 0; i < 300; ++i) {
      model.Step();
      model.Check();
      ASSERT_FALSE(HasFailure()) << "step " << i;
    }
  }
}

}  // namespace
}  // namespace gmb::broker
