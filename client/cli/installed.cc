// The programs and libraries of one installation find each other by where they
// lie, not by PATH, so that an installation can be moved, and several can be
// used side by side.
#include "client/cli/installed.h"

#include <filesystem>
#include <system_error>

namespace gmb::cli {

namespace fs = std::filesystem;

std::string ThisProgram() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? "gmb" : path.string();
}

std::string FindInstalled(const char* name,
                          std::initializer_list<const char*> folders) {
  const fs::path here = fs::path(ThisProgram()).parent_path();
  for (const char* const folder : folders) {
    std::error_code error;
    const fs::path candidate = (here / folder / name).lexically_normal();
    if (fs::is_regular_file(candidate, error)) return candidate.string();
  }
  return "";
}

}  // namespace gmb::cli
