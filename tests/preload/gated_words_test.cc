// The list of gated functions against cuda.h, which declares them all, under
// their own names, when it is asked to.
// NOLINTNEXTLINE(bugprone-reserved-identifier): cuda.h's name
#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>

#include <type_traits>

#include "client/preload/gated_functions.h"
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
TEST(GatedWordsTest, EachTakesSoManyWords) {
#define GMB_CHECK(name, count, ...) \
  EXPECT_TRUE(Takes<decltype(&::name)>::Words(count)) << #name;
  GMB_TOUCHING_FUNCTIONS(GMB_CHECK)
  GMB_ASKING_FUNCTIONS(GMB_CHECK)
  GMB_PINNING_FUNCTIONS(GMB_CHECK)
  GMB_SHARING_FUNCTIONS(GMB_CHECK)
  GMB_BINDING_FUNCTIONS(GMB_CHECK)
#undef GMB_CHECK
// The newest one has the plain name.
#define GMB_CHECK(name, count) EXPECT_GE(count, 3) << #name;
  GMB_CREATING_FUNCTIONS(GMB_CHECK)
#undef GMB_CHECK
}
#endif

}  // namespace
}  // namespace gmb::preload
