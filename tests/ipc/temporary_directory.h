#ifndef GMB_TESTS_IPC_TEMPORARY_DIRECTORY_H_
#define GMB_TESTS_IPC_TEMPORARY_DIRECTORY_H_

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/strings/string_view.h"

namespace gmb::testing {

// A directory of its own with a short path, removed with all that is in it.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    char path[] = "/tmp/gmb-XXXXXX";
    if (::mkdtemp(path) == nullptr) std::abort();
    path_ = path;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string File(absl::string_view name) const {
    return path_ + "/" + std::string(name);
  }

 private:
  std::string path_;
};

}  // namespace gmb::testing

#endif  // GMB_TESTS_IPC_TEMPORARY_DIRECTORY_H_
