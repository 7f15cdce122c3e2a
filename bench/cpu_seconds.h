#ifndef GMB_BENCH_CPU_SECONDS_H_
#define GMB_BENCH_CPU_SECONDS_H_

#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace gmb::bench {

// CPU time of a process so far, its threads together; of this one: "self".
[[nodiscard]] inline double CpuSeconds(const std::string& pid) {
  std::ifstream file(absl::StrCat("/proc/", pid, "/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  // After the name in brackets; utime and stime are fields 14 and 15.
  const std::vector<std::string> fields =
      absl::StrSplit(text.substr(text.rfind(')') + 2), ' ');
  double ticks = 0;
  for (const size_t field : {14U, 15U}) {
    double one = 0;
    if (absl::SimpleAtod(fields.at(field - 3), &one)) ticks += one;
  }
  return ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

}  // namespace gmb::bench

#endif  // GMB_BENCH_CPU_SECONDS_H_
