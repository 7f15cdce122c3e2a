#include "client/preload/entry_points.h"

#include <string>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

std::string SymbolFor(const char* name, int version, uint64_t flags) {
  const EntryPoint* const found = FindByName(name, version, flags);
  return found == nullptr ? "" : found->symbol;
}

TEST(EntryPointsTest, ANameMeansTheFunctionOfTheVersionAskedFor) {
  EXPECT_EQ(SymbolFor("cuMemAlloc", 3020, 0), "cuMemAlloc_v2");
  EXPECT_EQ(SymbolFor("cuMemAlloc", 13000, 2), "cuMemAlloc_v2");
  EXPECT_EQ(SymbolFor("cuMemAlloc", 2000, 0), "") << "32-bit addresses";
  EXPECT_EQ(SymbolFor("cuMemImportFromShareableHandle", 12000, 0),
            "cuMemImportFromShareableHandle");
  EXPECT_EQ(SymbolFor("cuGetProcAddress", 12000, 0), "cuGetProcAddress_v2");
  EXPECT_EQ(SymbolFor("cuGetProcAddress", 11030, 0), "cuGetProcAddress");
  EXPECT_EQ(SymbolFor("cuGetProcAddress_v2", 12000, 0), "cuGetProcAddress_v2");
  EXPECT_EQ(SymbolFor("cuDevicePrimaryCtxReset", 12000, 0),
            "cuDevicePrimaryCtxReset_v2");
  EXPECT_EQ(SymbolFor("cuDevicePrimaryCtxReset", 7000, 0),
            "cuDevicePrimaryCtxReset")
      << "what the CUDA runtime asks for";
}

TEST(EntryPointsTest, ThreadsDefaultStreamsHaveFunctionsOfTheirOwn) {
  EXPECT_EQ(SymbolFor("cuMemAllocAsync", 12000, 0), "cuMemAllocAsync");
  EXPECT_EQ(SymbolFor("cuMemAllocAsync", 12000, 1), "cuMemAllocAsync");
  EXPECT_EQ(SymbolFor("cuMemAllocAsync", 12000, 2), "cuMemAllocAsync_ptsz");
  EXPECT_EQ(SymbolFor("cuStreamEndCapture", 12000, 2),
            "cuStreamEndCapture_ptsz");
}

TEST(EntryPointsTest, WhatIsNotServedIsNotFound) {
  for (const char* const name :
       {"cuMemAllocManaged", "cuMemAddressReserve", "cuArrayCreate", "cuInit",
        "cudaMalloc", "malloc", "", "c", "cu"}) {
    EXPECT_EQ(FindByName(name, 13000, 0), nullptr) << name;
    EXPECT_EQ(FindBySymbol(name), nullptr) << name;
  }
  EXPECT_EQ(FindBySymbol("cuMemAlloc"), nullptr) << "the 32-bit function";
}

}  // namespace
}  // namespace gmb::preload
