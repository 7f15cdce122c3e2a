#ifndef GMB_TESTS_SANITIZED_H_
#define GMB_TESTS_SANITIZED_H_

#include <cstdint>

namespace gmb {

// Whether this test is built with a sanitizer.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
inline constexpr bool kSanitized =
    __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
inline constexpr bool kSanitized = false;
#endif

// How often a test repeats what it does. A property is looked for in all seeds
// by the release build; the memory errors that sanitizers find are those of the
// code that the first seeds run already.
constexpr uint64_t FewerIfSanitized(uint64_t all) {
  return kSanitized ? (all + 3) / 4 : all;
}

}  // namespace gmb

#endif  // GMB_TESTS_SANITIZED_H_
