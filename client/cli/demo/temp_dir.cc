// The demo: a directory that is gone afterwards.
#include "client/cli/demo/temp_dir.h"

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli {

absl::StatusOr<TempDir> TempDir::Make() {
  const char* const base = std::getenv("TMPDIR");
  std::string path = absl::StrCat(
      base == nullptr || *base == '\0' ? "/tmp" : base, "/gmb-demo-XXXXXX");
  if (mkdtemp(path.data()) == nullptr) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make a directory like ", path));
  }
  return TempDir(path);
}

TempDir::TempDir(TempDir&& other) noexcept
    : path_(std::exchange(other.path_, "")), keep_(other.keep_) {}

TempDir& TempDir::operator=(TempDir&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(keep_, other.keep_);
  return *this;
}

TempDir::~TempDir() {
  std::error_code ignored;  // a file that cannot be removed stays
  if (!path_.empty() && !keep_) std::filesystem::remove_all(path_, ignored);
}

}  // namespace gmb::cli
