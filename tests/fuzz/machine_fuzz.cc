// A fuzz target over the machine: the first byte chooses the world, the others
// are its events.
#include <cstdio>
#include <string>

#include "tests/broker/machine/machine_interpreter.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {

void FuzzMachine(Bytes bytes) {
  if (bytes.empty()) return;
  const broker::MachineRun run =
      broker::InterpretMachine(bytes.front(), bytes.subspan(1));
  if (run.problem.empty()) return;
  for (const std::string& line : run.last_lines)
    std::fprintf(stderr, "%s\n", line.c_str());
  Require(false, run.problem.c_str());
}

}  // namespace gmb::fuzz
