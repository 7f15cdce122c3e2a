#include <sys/stat.h>

#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/cli/app.h"
#include "client/cli/demo/temp_dir.h"
#include "gtest/gtest.h"
#include "tests/cli/as_ordinary_user.h"

namespace gmb::cli {
namespace {

// The output of `gmb status --quiet`, and its exit code, as one line.
std::string Probe(const std::string& socket_dir) {
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode code = Run({"status", "--quiet", "--socket-dir", socket_dir},
                            Terminal(), out, err);
  return absl::StrCat(out.str(), err.str(), "code ", static_cast<int>(code));
}

TEST(ProbeTest, ForAUserWhoIsNoOperatorTheBrokerIsNotReachable) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok()) << dir.status();
  ASSERT_EQ(chmod(dir->path().c_str(), 0755), 0);
  const std::string admin = dir->path() + "/admin";
  ASSERT_EQ(mkdir(admin.c_str(), 0), 0);
  EXPECT_EQ(AsOrdinaryUser([&] { return Probe(dir->path()); }), "code 3");
}

}  // namespace
}  // namespace gmb::cli
