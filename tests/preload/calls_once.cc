// Has a program that is not position-independent take std::call_once's address.
#include <mutex>

namespace {

std::once_flag once;
[[maybe_unused]] const int kCalled = (std::call_once(once, [] {}), 0);

}  // namespace
