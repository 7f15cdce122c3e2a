#ifndef GMB_CLIENT_CLI_DEMO_TEMP_DIR_H_
#define GMB_CLIENT_CLI_DEMO_TEMP_DIR_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace gmb::cli {

// A new directory of this user alone, removed with all in it when destroyed,
// unless it is to be kept. Move-only.
class TempDir {
 public:
  // Below TMPDIR, else /tmp.
  [[nodiscard]] static absl::StatusOr<TempDir> Make();
  TempDir(TempDir&& other) noexcept;
  TempDir& operator=(TempDir&& other) noexcept;
  ~TempDir();

  [[nodiscard]] const std::string& path() const { return path_; }
  void Keep() { keep_ = true; }

 private:
  explicit TempDir(std::string path) : path_(std::move(path)) {}

  std::string path_;  // empty: moved from
  bool keep_ = false;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_TEMP_DIR_H_
