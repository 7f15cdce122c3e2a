// The list of gated functions against cuda.h, which declares them all, under
// their own names, when it is asked to.
// NOLINTNEXTLINE(bugprone-reserved-identifier): cuda.h's name
#define __CUDA_API_VERSION_INTERNAL
#include "client/preload/gated_functions.h"

#include <cuda.h>

#include <set>
#include <string>
#include <type_traits>

#include "client/preload/gated.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

// Travels in one word.
template <typename Argument>
constexpr bool IsWord() {
  return std::is_integral_v<Argument> || std::is_pointer_v<Argument> ||
         std::is_enum_v<Argument> ||
         (std::is_class_v<Argument> && sizeof(Argument) <= 8 &&
          std::is_trivially_copyable_v<Argument>);
}

// Of the type alone: there is no driver to link.
template <typename Function>
struct Takes;
template <typename... Arguments>
struct Takes<CUresult (*)(Arguments...)> {
  static constexpr bool Words(int count) {
    return sizeof...(Arguments) == count && (IsWord<Arguments>() && ...);
  }
};

// Those of newer releases are not declared by older ones.
#if CUDA_VERSION >= 13000
TEST(GatedFunctionsTest, EachTakesSoManyWords) {
#define GMB_CHECK(name, count, ...) \
  EXPECT_TRUE(Takes<decltype(&::name)>::Words(count)) << #name;
  GMB_TOUCHING_FUNCTIONS(GMB_CHECK)
  GMB_ASKING_FUNCTIONS(GMB_CHECK)
  GMB_SHARING_FUNCTIONS(GMB_CHECK)
  GMB_BINDING_FUNCTIONS(GMB_CHECK)
#undef GMB_CHECK
// The newest one has the plain name.
#define GMB_CHECK(name, count) EXPECT_GE(count, 3) << #name;
  GMB_CREATING_FUNCTIONS(GMB_CHECK)
#undef GMB_CHECK
}
#endif

TEST(GatedFunctionsTest, EachIsListedOnceAndFoundByItsSymbol) {
  std::set<std::string> seen;
#define GMB_CHECK(name, ...)                       \
  EXPECT_TRUE(seen.insert(#name).second) << #name; \
  ASSERT_NE(FindGatedBySymbol(#name), nullptr);    \
  EXPECT_STREQ(FindGatedBySymbol(#name)->symbol, #name);
  GMB_TOUCHING_FUNCTIONS(GMB_CHECK)
  GMB_ASKING_FUNCTIONS(GMB_CHECK)
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
        "cuModuleLoadData", "cuMemAllocHost_v2", "cuInit", "", "cu"}) {
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
