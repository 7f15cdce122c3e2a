#include "tests/cli/shell.h"

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "absl/strings/str_cat.h"
#include "client/cli/demo/temp_dir.h"

namespace gmb::cli {

bool HaveShell(const std::string& shell) {
  return std::system(
             absl::StrCat("command -v ", shell, " >/dev/null").c_str()) == 0;
}

std::string RunInShell(const std::string& shell, const std::string& script) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  const std::string path = dir->path() + "/script";
  std::ofstream(path) << script;
  const std::string bare = shell == "bash"  ? "--norc"
                           : shell == "zsh" ? "-f"
                                            : "--no-config";
  // fish writes its history and state somewhere.
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(
      popen(absl::StrCat("HOME=", dir->path(), " XDG_CONFIG_HOME=", dir->path(),
                         " XDG_DATA_HOME=", dir->path(), " ", shell, " ", bare,
                         " ", path, " 2>&1 </dev/null")
                .c_str(),
            "re"),
      &pclose);
  std::string said;
  std::array<char, 4096> part{};
  while (fgets(part.data(), part.size(), pipe.get()) != nullptr)
    said += part.data();
  return said;
}

}  // namespace gmb::cli
