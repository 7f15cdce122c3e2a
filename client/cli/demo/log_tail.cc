// The demo: why a program that it has started did not serve.
#include "client/cli/demo/log_tail.h"

#include <cstddef>
#include <deque>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace gmb::cli {

std::string LogTail(const std::string& path) {
  constexpr size_t kLines = 5;
  std::ifstream file(path);
  std::deque<std::string> tail;
  for (std::string line; std::getline(file, line);) {
    tail.push_back(line);
    if (tail.size() > kLines) tail.pop_front();
  }
  return tail.empty()
             ? "its log is empty"
             : absl::StrCat("its log ends: ", absl::StrJoin(tail, " | "));
}

}  // namespace gmb::cli
