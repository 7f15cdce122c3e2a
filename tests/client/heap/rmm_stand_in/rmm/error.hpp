#ifndef GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_RMM_ERROR_HPP_
#define GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_RMM_ERROR_HPP_

#include <new>
#include <string>
#include <utility>

namespace rmm {

// RMM's errors, with their words.
class bad_alloc : public std::bad_alloc {
 public:
  explicit bad_alloc(std::string what) : what_(std::move(what)) {}
  [[nodiscard]] const char* what() const noexcept override {
    return what_.c_str();
  }

 private:
  std::string what_;
};

class out_of_memory : public bad_alloc {
 public:
  using bad_alloc::bad_alloc;
};

}  // namespace rmm

#endif  // GMB_TESTS_CLIENT_HEAP_RMM_STAND_IN_RMM_ERROR_HPP_
