#ifndef GMB_BENCH_HEAP_TRACE_H_
#define GMB_BENCH_HEAP_TRACE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace gmb::bench {

// A program's requests to its allocator, in order. bench/traces/README.md says
// how a file of them is written.
struct Trace {
  struct Event {
    bool allocates;
    uint64_t block;   // by the order of allocation, from 0
    uint64_t bytes;   // of the block
    uint64_t stream;  // from 0
  };

  std::string name;    // of the file, without ".gz"
  std::string source;  // what it was recorded from
  std::vector<Event> events;
  uint64_t blocks = 0;
  uint64_t streams = 0;
  uint64_t peak_bytes = 0;  // the most that was live at a time
};

// INVALID_ARGUMENT with the line that is wrong, or for a file that is no trace
// or has no events.
[[nodiscard]] absl::StatusOr<Trace> ReadTrace(const std::string& path);

}  // namespace gmb::bench

#endif  // GMB_BENCH_HEAP_TRACE_H_
