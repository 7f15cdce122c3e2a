#include "client/preload/gated_functions.h"

#include <set>
#include <string>

#include "client/preload/gated.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

TEST(GatedFunctionsTest, EachIsListedOnceAndFoundByItsSymbol) {
  std::set<std::string> seen;
#define GMB_CHECK(name, ...)                       \
  EXPECT_TRUE(seen.insert(#name).second) << #name; \
  ASSERT_NE(FindGatedBySymbol(#name), nullptr);    \
  EXPECT_STREQ(FindGatedBySymbol(#name)->symbol, #name);
  GMB_TOUCHING_FUNCTIONS(GMB_CHECK)
  GMB_ASKING_FUNCTIONS(GMB_CHECK)
  GMB_PINNING_FUNCTIONS(GMB_CHECK)
  GMB_SHARING_FUNCTIONS(GMB_CHECK)
  GMB_BINDING_FUNCTIONS(GMB_CHECK)
  GMB_CREATING_FUNCTIONS(GMB_CHECK)
#undef GMB_CHECK
  std::set<void*> functions;
  for (const std::string& name : seen)
    functions.insert(FindGatedBySymbol(name.c_str())->function);
  EXPECT_EQ(functions.size(), seen.size()) << "two names share a function";
}

TEST(GatedFunctionsTest, WhatWaitsOrGivesBackIsNotGated) {
  for (const char* const name :
       {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventQuery",
        "cuEventRecord", "cuLaunchHostFunc", "cuMemFree_v2", "cuMemUnmap",
        "cuModuleLoadData", "cuMemAllocManaged", "cuInit", "", "cu"}) {
    EXPECT_EQ(FindGatedBySymbol(name), nullptr) << name;
    EXPECT_FALSE(IsGatedName(name)) << name;
  }
}

TEST(GatedFunctionsTest, ANameIsKnownWithoutItsVersionAndSuffix) {
  for (const char* const name :
       {"cuMemcpyHtoD", "cuMemcpyHtoD_v2", "cuLaunchKernel", "cuMemsetD8Async",
        "cuGraphInstantiate", "cuMemcpyBatchAsync"}) {
    EXPECT_TRUE(IsGatedName(name)) << name;
  }
}

}  // namespace
}  // namespace gmb::preload
