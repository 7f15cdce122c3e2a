// Measures what a broker and its keeper take, again and again.
#include "bench/load/sample.h"

#include <sys/statvfs.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/status_macros.h"
#include "broker/keeping/journal_look.h"
#include "client/cli/commands/keeper_look.h"
#include "gmb/v1/admin.pb.h"
#include "keeper/link/keeper_link.h"

namespace gmb::bench {
namespace {

constexpr double kKiBInMiB = 1024;
constexpr double kBytesInMiB = 1 << 20;

// "Threads:	7"
double NumberIn(const std::string& line) {
  double number = 0;
  for (const absl::string_view word :
       absl::StrSplit(line, absl::ByAnyChar(" \t"), absl::SkipEmpty())) {
    if (absl::SimpleAtod(word, &number)) return number;
  }
  return 0;
}

double UsedShmMiB() {
  struct statvfs shm {};
  if (::statvfs("/dev/shm", &shm) != 0) return 0;
  return static_cast<double>(shm.f_blocks - shm.f_bfree) *
         static_cast<double>(shm.f_frsize) / kBytesInMiB;
}

}  // namespace

ProcessFigures FiguresOf(pid_t pid) {
  ProcessFigures figures;
  std::ifstream status(absl::StrCat("/proc/", pid, "/status"));
  for (std::string line; std::getline(status, line);) {
    if (absl::StartsWith(line, "VmRSS:"))
      figures.rss_mib = NumberIn(line) / kKiBInMiB;
    if (absl::StartsWith(line, "RssAnon:"))
      figures.anonymous_mib = NumberIn(line) / kKiBInMiB;
    if (absl::StartsWith(line, "Threads:")) figures.threads = NumberIn(line);
  }
  std::error_code error;
  for (std::filesystem::directory_iterator
           fd(absl::StrCat("/proc/", pid, "/fd"), error),
       end;
       !error && fd != end; fd.increment(error)) {
    ++figures.fds;
  }
  return figures;
}

absl::StatusOr<Sample> TakeSample(const LoadStage& stage) {
  Sample sample;
  GMB_ASSIGN_OR_RETURN(
      const v1::GetStatusResponse status,
      stage.broker().admin().GetStatus(v1::GetStatusRequest()));
  sample.sessions = static_cast<double>(status.sessions());
  sample.leases = static_cast<double>(status.leases());
  for (const v1::PoolStatus& pool : status.pools())
    sample.slabs += pool.slabs();
  const std::string& socket = stage.keeper().socket();
  GMB_ASSIGN_OR_RETURN(keeper::KeeperLink link,
                       keeper::KeeperLink::Connect(
                           {.socket = socket, .role = keeper::Role::kCommand}));
  GMB_ASSIGN_OR_RETURN(const cli::KeeperLook look, cli::LookAtKeeper(&link));
  sample.kept_entries = static_cast<double>(look.status.entries);
  if (look.count.has_value()) {
    sample.kept_mib =
        static_cast<double>(look.count->memory_bytes) / kBytesInMiB;
  }
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd journal,
                       broker::FetchJournal(socket));
  GMB_ASSIGN_OR_RETURN(const broker::JournalFill fill,
                       broker::FillOfJournal(journal.get()));
  sample.journal_records = static_cast<double>(fill.used);
  sample.journal_slots = fill.slots;
  sample.broker = FiguresOf(stage.broker().pid());
  sample.keeper = FiguresOf(stage.keeper().pid());
  sample.shm_mib = UsedShmMiB();
  return sample;
}

}  // namespace gmb::bench
