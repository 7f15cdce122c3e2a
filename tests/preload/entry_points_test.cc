#include "client/preload/entry_points.h"

#include <iterator>
#include <set>
#include <string>

#include "client/preload/gated.h"
#include "client/preload/known_functions.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

TEST(EntryPointsTest, EachFormOfAFunctionHasOneOfItsOwn) {
  std::set<void*> functions;
  size_t names = 0;
  for (const char* const symbol :
       {"cuGetProcAddress", "cuGetProcAddress_v2", "cuMemAlloc_v2",
        "cuMemImportFromShareableHandle", "cuIpcOpenMemHandle",
        "cuIpcOpenMemHandle_v2", "cuMemAllocAsync", "cuMemAllocAsync_ptsz",
        "cuStreamEndCapture", "cuStreamEndCapture_ptsz",
        "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2", "cuCtxAttach",
        "cuCtxDetach", "cuStreamSynchronize", "cuStreamSynchronize_ptsz",
        "cuEventSynchronize", "cuCtxSynchronize", "cuCtxSynchronize_v2"}) {
    const EntryPoint* const found = FindBySymbol(symbol);
    ASSERT_NE(found, nullptr) << symbol;
    EXPECT_STREQ(found->symbol, symbol);
    EXPECT_TRUE(IsKnownSymbol(symbol)) << symbol;
    EXPECT_EQ(FindGatedBySymbol(symbol), nullptr) << symbol;
    functions.insert(found->function);
    ++names;
  }
  EXPECT_EQ(functions.size(), names) << "two names share a function";
}

// A program that has the driver's own of these does nothing past the gate.
TEST(EntryPointsTest, OnlyWaitsAreOnlyCounted) {
  for (const char* const wait :
       {"cuStreamSynchronize", "cuStreamSynchronize_ptsz", "cuEventSynchronize",
        "cuCtxSynchronize", "cuCtxSynchronize_v2"}) {
    EXPECT_TRUE(FindBySymbol(wait)->only_counted) << wait;
  }
  for (const char* const other :
       {"cuGetProcAddress_v2", "cuMemAlloc_v2", "cuMemFreeAsync",
        "cuMemPoolTrimTo", "cuStreamBeginCapture_v2", "cuStreamDestroy_v2"}) {
    EXPECT_FALSE(FindBySymbol(other)->only_counted) << other;
  }
}

TEST(EntryPointsTest, WhatIsNotServedIsNotFound) {
  for (const char* const name :
       {"cuMemAllocManaged", "cuMemAddressReserve", "cuArrayCreate", "cuInit",
        "cuMemAlloc_v9", "cudaMalloc", "malloc", "", "c", "cu"}) {
    EXPECT_EQ(FindBySymbol(name), nullptr) << name;
  }
  EXPECT_EQ(FindBySymbol("cuMemAlloc"), nullptr) << "the 32-bit function";
  int other = 0;
  EXPECT_EQ(FindByReal(&other), nullptr);
}

}  // namespace
}  // namespace gmb::preload
