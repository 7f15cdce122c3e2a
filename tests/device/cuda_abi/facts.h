#ifndef GMB_TESTS_DEVICE_CUDA_ABI_FACTS_H_
#define GMB_TESTS_DEVICE_CUDA_ABI_FACTS_H_

#include <map>
#include <string>

namespace gmb::test {

// The facts that a header tells of the driver: by name a number, a type with
// its size, the place of a field, or what a function takes and gives.
using Facts = std::map<std::string, std::string>;

[[nodiscard]] Facts OurFacts();  // of device/cuda/abi/ and those who add to it
[[nodiscard]] Facts HeaderFacts();  // of the toolkit's cuda.h

}  // namespace gmb::test

#endif  // GMB_TESTS_DEVICE_CUDA_ABI_FACTS_H_
