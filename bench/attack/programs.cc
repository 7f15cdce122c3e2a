// Both benches of attacks run the programs that were built with them.
#include "bench/attack/programs.h"

#include <filesystem>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/installed.h"

namespace gmb::bench {

absl::Status FindPrograms(Programs* programs) {
  if (programs->gmbd.empty()) {
    absl::StatusOr<std::string> gmbd = cli::FindBroker();
    if (!gmbd.ok()) return gmbd.status();
    programs->gmbd = *std::move(gmbd);
  }
  if (programs->attacker.empty()) {
    programs->attacker =
        (std::filesystem::path(cli::ThisProgram()).parent_path().parent_path() /
         "tests" / "attacker")
            .string();
  }
  if (std::filesystem::exists(programs->attacker)) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "no attacker at ", programs->attacker,
      ": build the target attacker, or say where it is by --attacker"));
}

}  // namespace gmb::bench
