// This program's version.
#include "client/cli/version_text.h"

#include "absl/strings/str_cat.h"
#include "base/commit.h"
#include "gmb/version.h"

namespace gmb::cli {

std::string VersionText() {
  const std::string commit = base::Commit();
  return absl::StrCat(GMB_VERSION_STRING,
                      commit.empty() ? "" : absl::StrCat(" (", commit, ")"));
}

}  // namespace gmb::cli
