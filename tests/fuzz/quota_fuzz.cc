// Calls of the quota engine, beside a model of it that is simple and slow.
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"
#include "tests/quota/interpreter.h"

namespace gmb::fuzz {

void FuzzQuota(Bytes bytes) {
  const auto result = quota::Interpret(bytes);
  Require(result.problem.empty(), result.problem.c_str());
}

}  // namespace gmb::fuzz
