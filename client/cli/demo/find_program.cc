// The demo: the programs that it shows.
#include "client/cli/demo/find_program.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "client/cli/installed.h"

namespace gmb::cli {
namespace {

bool Executable(const std::filesystem::path& path) {
  return access(path.c_str(), X_OK) == 0;
}

}  // namespace

absl::StatusOr<std::string> FindProgram(const char* name) {
  const std::string installed = FindInstalled(name, {".", BinFromLibexec()});
  if (!installed.empty() && Executable(installed)) return installed;
  const char* const path = std::getenv("PATH");
  for (const absl::string_view dir :
       absl::StrSplit(path == nullptr ? "" : path, ':')) {
    const std::filesystem::path candidate =
        std::filesystem::path(std::string(dir)) / name;
    if (Executable(candidate)) return candidate.string();
  }
  return absl::NotFoundError(absl::StrCat(
      "no ", name,
      " to show: build or install it with gmb, or add it to PATH; looked from ",
      ThisProgram()));
}

}  // namespace gmb::cli
