// The host pool: how much memory the machine has to spare.
#include "device/hostpool/machine_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gmb::device {
namespace {

// The number behind `key` in a file of "key number" lines.
std::optional<uint64_t> ReadKey(const std::string& path,
                                absl::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const std::vector<absl::string_view> words =
        absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty());
    uint64_t value = 0;
    if (words.size() >= 2 && words[0] == key &&
        absl::SimpleAtoi(words[1], &value)) {
      return value;
    }
  }
  return std::nullopt;
}

// A file that is one number; nothing when it is absent or says "max".
std::optional<uint64_t> ReadNumber(const std::string& path) {
  std::ifstream file(path);
  std::string word;
  uint64_t value = 0;
  if (!(file >> word) || !absl::SimpleAtoi(word, &value)) return std::nullopt;
  return value;
}

// Where a hierarchy keeps its figures.
struct Files {
  const char* limit;
  const char* usage;
  const char* inactive_key;  // in memory.stat
};
constexpr Files kVersion2 = {"memory.max", "memory.current", "inactive_file"};
constexpr Files kVersion1 = {"memory.limit_in_bytes", "memory.usage_in_bytes",
                             "total_inactive_file"};

void LowerByGroup(const std::string& folder, const Files& files,
                  AvailableMemory* available) {
  const std::string limit_path = absl::StrCat(folder, "/", files.limit);
  const std::optional<uint64_t> limit = ReadNumber(limit_path);
  const std::optional<uint64_t> usage =
      ReadNumber(absl::StrCat(folder, "/", files.usage));
  if (!limit.has_value() || !usage.has_value()) return;
  const uint64_t droppable =
      ReadKey(absl::StrCat(folder, "/memory.stat"), files.inactive_key)
          .value_or(0);
  const uint64_t used = *usage - std::min(*usage, droppable);
  const uint64_t left = *limit - std::min(*limit, used);
  if (left < available->bytes) *available = {left, limit_path};
}

// The group itself and those above it. Inside a container the path may name
// what is not mounted here; the container's own limit then stands at the top.
void LowerByHierarchy(const std::string& mount, absl::string_view path,
                      const Files& files, AvailableMemory* available) {
  std::string group(absl::StripSuffix(path, "/"));
  while (true) {
    LowerByGroup(mount + group, files, available);
    if (group.empty()) return;
    group.resize(group.rfind('/'));
  }
}

}  // namespace

absl::StatusOr<AvailableMemory> ReadAvailableMemory(const std::string& root) {
  const std::string meminfo = root + "/proc/meminfo";
  const std::optional<uint64_t> kilobytes = ReadKey(meminfo, "MemAvailable:");
  if (!kilobytes.has_value()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "cannot tell how much memory is available: mount /proc: no "
        "MemAvailable in ",
        meminfo));
  }
  AvailableMemory available{*kilobytes * 1024, meminfo};
  const std::string mount = root + "/sys/fs/cgroup";
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // number:controllers:path
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (parts.size() != 3 || !absl::StartsWith(parts[2], "/")) continue;
    if (parts[1].empty()) {
      LowerByHierarchy(mount, parts[2], kVersion2, &available);
      continue;
    }
    for (const absl::string_view controller : absl::StrSplit(parts[1], ',')) {
      if (controller != "memory") continue;
      LowerByHierarchy(mount + "/memory", parts[2], kVersion1, &available);
    }
  }
  return available;
}

}  // namespace gmb::device
