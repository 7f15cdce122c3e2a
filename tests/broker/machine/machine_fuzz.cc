// A fuzz target over the machine: the first byte chooses the world, the others
// are its events. Built by the preset `fuzz`:
//
//     build/fuzz/bin/machine_fuzz -max_len=8000 CORPUS
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/types/span.h"
#include "tests/broker/machine/machine_interpreter.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const gmb::broker::MachineRun run = gmb::broker::InterpretMachine(
      data[0], absl::MakeSpan(data + 1, size - 1));
  if (run.problem.empty()) return 0;
  for (const std::string& line : run.last_lines)
    std::fprintf(stderr, "%s\n", line.c_str());
  std::fprintf(stderr, "%s\n", run.problem.c_str());
  std::abort();
}
