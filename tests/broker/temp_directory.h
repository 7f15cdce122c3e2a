#ifndef GMB_TESTS_BROKER_TEMP_DIRECTORY_H_
#define GMB_TESTS_BROKER_TEMP_DIRECTORY_H_

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

namespace gmb::broker {

// A new directory, removed with all that is in it.
class TempDirectory {
 public:
  explicit TempDirectory(const std::string& where = "/tmp") {
    std::string path = where + "/gmb-test-XXXXXX";
    if (::mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TempDirectory() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const {
    return path_ + "/" + name;
  }

 private:
  std::string path_;
};

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_TEMP_DIRECTORY_H_
