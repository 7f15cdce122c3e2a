// The broker's start: makes directories with the right mode.
#include "broker/make_directories.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"

namespace gmb::broker {

absl::Status MakeDirectories(const std::string& path, mode_t mode) {
  for (size_t end = path.find('/', 1);; end = path.find('/', end + 1)) {
    const bool is_last = end == std::string::npos;
    const std::string part = path.substr(0, end);
    const mode_t wanted = is_last ? mode : 0755;
    // The umask may have taken away what was asked for.
    const bool made = ::mkdir(part.c_str(), wanted) == 0;
    if ((!made && errno != EEXIST) ||
        (made && ::chmod(part.c_str(), wanted) != 0)) {
      return absl::ErrnoToStatus(
          errno, absl::StrCat("cannot make the directory ", part));
    }
    if (is_last) return absl::OkStatus();
  }
}

}  // namespace gmb::broker
