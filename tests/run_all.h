#ifndef GMB_TESTS_RUN_ALL_H_
#define GMB_TESTS_RUN_ALL_H_

#include <gtest/gtest.h>

namespace gmb {

// How a program ends whose tests all skipped themselves: CTest shows it as
// skipped then, and not as passed.
inline constexpr int kAllSkipped = 77;

// The result of main, once GoogleTest or GoogleMock has its flags.
[[nodiscard]] inline int RunAllTests() {
  const int failed = RUN_ALL_TESTS();
  const testing::UnitTest& tests = *testing::UnitTest::GetInstance();
  const bool all_skipped =
      tests.skipped_test_count() > 0 && tests.successful_test_count() == 0;
  return failed == 0 && all_skipped ? kAllSkipped : failed;
}

}  // namespace gmb

#endif  // GMB_TESTS_RUN_ALL_H_
