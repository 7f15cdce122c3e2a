#include "client/preload/virtual_handles.h"

#include <array>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

class VirtualHandlesTest : public ::testing::Test {
 protected:
  using Starts = std::vector<uint64_t>;
  static constexpr uint64_t kMiB = uint64_t{1} << 20;
  static constexpr uint64_t kAt = uint64_t{1} << 40;

  [[nodiscard]] Starts Met(uint64_t start, uint64_t bytes) {
    Starts starts;
    for (const VirtualMapping& mapping : book_.In(start, bytes, &whole_))
      starts.push_back(mapping.start);
    return starts;
  }

  VirtualHandles book_;
  bool whole_ = true;
};

TEST_F(VirtualHandlesTest, RangesMeetWhatTheyTouch) {
  const auto handle = book_.Add(4 * kMiB, {});
  ASSERT_TRUE(book_.AddMapping(handle, kAt));
  ASSERT_TRUE(book_.AddMapping(handle, kAt + 8 * kMiB));
  EXPECT_EQ(Met(kAt, 4 * kMiB), Starts{kAt});
  EXPECT_TRUE(whole_);
  EXPECT_EQ(Met(kAt - kMiB, 16 * kMiB), (Starts{kAt, kAt + 8 * kMiB}));
  EXPECT_TRUE(whole_);
  EXPECT_EQ(Met(kAt + 4 * kMiB, 4 * kMiB), Starts{});
  EXPECT_EQ(Met(kAt, 0), Starts{});
  EXPECT_EQ(Met(kAt, 4 * kMiB - 1), Starts{kAt});
  EXPECT_FALSE(whole_);
  EXPECT_EQ(Met(kAt + 1, 100 * kMiB), (Starts{kAt, kAt + 8 * kMiB}));
  EXPECT_FALSE(whole_);
  EXPECT_EQ(Met(kAt + kMiB, ~uint64_t{0}), (Starts{kAt, kAt + 8 * kMiB}));
  EXPECT_FALSE(whole_) << "a size that wraps around";
}

TEST_F(VirtualHandlesTest, NoMappingLiesOverAnother) {
  const auto handle = book_.Add(4 * kMiB, {});
  ASSERT_TRUE(book_.AddMapping(handle, kAt));
  EXPECT_FALSE(book_.AddMapping(handle, kAt));
  EXPECT_FALSE(book_.AddMapping(handle, kAt + 2 * kMiB));
  EXPECT_FALSE(book_.AddMapping(handle, kAt - 2 * kMiB));
  EXPECT_TRUE(book_.AddMapping(handle, kAt + 4 * kMiB));
  EXPECT_EQ(book_.At(kAt + 4 * kMiB - 1)->start, kAt);
  EXPECT_EQ(book_.At(kAt - 1), nullptr);
  EXPECT_EQ(book_.At(kAt + 8 * kMiB), nullptr);
}

TEST_F(VirtualHandlesTest, AHandleIsKnownByItsLeaseWhileSomebodyHasIt) {
  const LeaseName lease(7, {1, 2});
  const auto handle = book_.Add(4 * kMiB, {});
  EXPECT_EQ(book_.OfLease(lease), std::nullopt);
  book_.NoteLease(handle, lease);
  EXPECT_EQ(book_.OfLease(lease), handle);
  EXPECT_EQ(book_.OfLease({7, {1, 3}}), std::nullopt) << "another key";
  ASSERT_TRUE(book_.AddMapping(handle, kAt));
  book_.Find(handle)->references = 0;
  EXPECT_EQ(book_.OfLease(lease), handle) << "it is mapped still";
  book_.RemoveMapping(kAt);
  EXPECT_EQ(book_.OfLease(lease), std::nullopt);

  // It is opened anew before the first one is taken.
  const auto other = book_.Add(4 * kMiB, {});
  book_.NoteLease(other, lease);
  EXPECT_TRUE(book_.TakeUnused(handle).has_value());
  EXPECT_EQ(book_.OfLease(lease), other);
  const LeaseName later(8, {3});  // by another broker
  book_.NoteLease(other, later);
  EXPECT_EQ(book_.OfLease(lease), std::nullopt);
  EXPECT_EQ(book_.OfLease(later), other);
  book_.Find(other)->references = 0;
  EXPECT_TRUE(book_.TakeUnused(other).has_value());
  EXPECT_EQ(book_.OfLease(later), std::nullopt);
  book_.NoteLease(other, lease);  // it was released while it was exported
  EXPECT_EQ(book_.OfLease(lease), std::nullopt);
}

TEST_F(VirtualHandlesTest, AHandleIsUnusedWithoutReferencesAndMappings) {
  const auto handle = book_.Add(4 * kMiB, {});
  const auto other = book_.Add(4 * kMiB, {});
  EXPECT_NE(handle, other);
  EXPECT_TRUE(VirtualHandles::IsOurs(handle));
  EXPECT_FALSE(VirtualHandles::IsOurs(kAt));
  EXPECT_FALSE(VirtualHandles::IsOurs(0x7ffd'1234'5678));
  ASSERT_TRUE(book_.AddMapping(handle, kAt));
  EXPECT_FALSE(book_.TakeUnused(handle).has_value());
  book_.Find(handle)->references = 0;
  EXPECT_EQ(book_.FindReferenced(handle), nullptr);
  EXPECT_FALSE(book_.TakeUnused(handle).has_value());
  EXPECT_FALSE(book_.IsUnused(handle));
  EXPECT_EQ(book_.RemoveMapping(kAt), handle);
  EXPECT_TRUE(book_.IsUnused(handle));
  CUmemAllocationProp other_properties{};
  other_properties.allocFlags.gpuDirectRDMACapable = 1;
  book_.UseAgain(handle, other_properties);
  EXPECT_FALSE(book_.TakeUnused(handle).has_value());
  EXPECT_EQ(
      book_.FindReferenced(handle)->properties.allocFlags.gpuDirectRDMACapable,
      1);
  book_.Find(handle)->references = 0;
  EXPECT_TRUE(book_.TakeUnused(handle).has_value());
  EXPECT_FALSE(book_.IsUnused(handle));
  EXPECT_FALSE(book_.TakeUnused(handle).has_value());
  EXPECT_EQ(book_.Find(handle), nullptr);
  EXPECT_NE(book_.Find(other), nullptr);
}

TEST_F(VirtualHandlesTest, TheLastWordOfEachDeviceIsItsAccess) {
  const auto handle = book_.Add(4 * kMiB, {});
  ASSERT_TRUE(book_.AddMapping(handle, kAt));
  std::array<CUmemAccessDesc, 2> access{};
  for (int device = 0; device < 2; ++device) {
    access[device].location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access[device].location.id = device;
    access[device].flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  }
  book_.SetAccess(kAt, 4 * kMiB, access.data(), access.size());
  access[1].flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  book_.SetAccess(kAt, 4 * kMiB, &access[1], 1);
  const auto& known = book_.At(kAt)->access;
  ASSERT_EQ(known.size(), 2U);
  EXPECT_EQ(known[0].flags, CU_MEM_ACCESS_FLAGS_PROT_READ);
  EXPECT_EQ(known[1].flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
}

}  // namespace
}  // namespace gmb::preload
