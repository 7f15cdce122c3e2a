// Measures how much longer a broker takes to start when the owner of tenants'
// directories lays links where it is about to make their sockets, beside a
// process that takes the same processor time and leaves the broker alone.
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "bench/attack/others.h"
#include "bench/attack/programs.h"
#include "bench/quantile.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/tenant_identity.h"
#include "gmb/client.h"

namespace gmb::bench {
namespace {

constexpr unsigned kOwner = 64'323;  // of the directories with the links
constexpr int kDirectories = 10;
constexpr char kLongEnough[] = "600";
constexpr absl::Duration kPatience = absl::Seconds(30);
constexpr absl::Duration kUntilItLies = absl::Milliseconds(200);

constexpr char kUsage[] =
    R"(usage: start_bench [--gmbd PATH] [--attacker PATH] [--rounds 20]

Each round starts a broker of the host device twice: under link_ambush, and
beside a process that burns as much of a core. Needs root. Prints how long it
took, in ms, until an operator was answered and until an honest tenant had a
lease, the median and the worst of the rounds.
)";

struct Options {
  Programs programs;
  int rounds = 20;
};

struct Times {
  std::vector<double> answered_ms, leased_ms;
};

std::string Config() {
  std::string config = "tenants:\n  - {name: honest, limit: 100%}\n";
  for (int i = 0; i < kDirectories; ++i) {
    absl::StrAppend(&config, "  - {name: m", i, ", socket: {owner: ", kOwner,
                    "}}\n");
  }
  return config;
}

absl::Status Lease(const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = cli::TenantSocketDir(socket_dir, kHonest);
  options.connect_timeout = kPatience;
  GMB_ASSIGN_OR_RETURN(const std::unique_ptr<Client> client,
                       Client::Connect(std::move(options)));
  GMB_ASSIGN_OR_RETURN(gmb::Lease lease, client->Acquire(uint64_t{2} << 20));
  return std::move(lease).Release();
}

// One start, and an orderly end. `times` may be null: not measured.
absl::Status StartOnce(const cli::BrokerProcess::Options& options,
                       Times* times) {
  const absl::Time start = absl::Now();
  GMB_ASSIGN_OR_RETURN(const auto broker, cli::BrokerProcess::Start(options));
  const absl::Time answered = absl::Now();
  GMB_RETURN_IF_ERROR(Lease(broker->socket_dir()));
  if (times != nullptr) {
    times->answered_ms.push_back(absl::ToDoubleMilliseconds(answered - start));
    times->leased_ms.push_back(absl::ToDoubleMilliseconds(absl::Now() - start));
  }
  return broker->Stop(kPatience).status();
}

// Starts while the process goes on; it adds to `cores` what it took of one.
absl::Status StartBeside(const cli::BrokerProcess::Options& broker,
                         std::vector<std::string> command, Times* times,
                         double* cores) {
  cli::ChildProcess::Options options;
  options.command = std::move(command);
  options.log_path = broker.dir + "/attacker.log";
  const absl::Time start = absl::Now();
  GMB_ASSIGN_OR_RETURN(cli::ChildProcess process,
                       cli::ChildProcess::Start(options));
  absl::SleepFor(kUntilItLies);
  GMB_RETURN_IF_ERROR(StartOnce(broker, times));
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(process.pid(), &clock) != 0 ||
      ::clock_gettime(clock, &used) != 0) {
    return absl::UnavailableError("the attacker's processor time is not known");
  }
  *cores =
      absl::FDivDuration(absl::DurationFromTimespec(used), absl::Now() - start);
  process.Signal(SIGTERM);
  GMB_ASSIGN_OR_RETURN(const std::string ended,
                       process.Wait(absl::Now() + kPatience));
  if (ended == "exit code 0") return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("the attacker ended with ", ended,
                                             "; see ", options.log_path));
}

absl::Status Untouched(const std::string& victim) {
  struct stat now {};
  if (::stat(victim.c_str(), &now) == 0 && now.st_mode == (S_IFREG | 0600U) &&
      now.st_uid == 0 && now.st_size == 0) {
    return absl::OkStatus();
  }
  return absl::DataLossError("the file that the links lead to was changed");
}

void Print(const char* name, const Times& times) {
  std::printf("%-14s answered %6.1f (%6.1f)   leased %6.1f (%6.1f)\n", name,
              Quantile(times.answered_ms, 0.5), Quantile(times.answered_ms, 1),
              Quantile(times.leased_ms, 0.5), Quantile(times.leased_ms, 1));
}

absl::Status Run(const Options& options) {
  if (::getuid() != 0)
    return absl::PermissionDeniedError(
        "only root gives tenants' directories to another user");
  GMB_ASSIGN_OR_RETURN(const cli::TempDir dir, cli::TempDir::Make());
  const std::string victim = dir.path() + "/victim";
  std::ofstream(victim).close();
  if (::chmod(victim.c_str(), 0600) != 0 ||
      ::chmod(dir.path().c_str(), 0755) != 0) {
    return absl::ErrnoToStatus(errno, "chmod");
  }
  cli::BrokerProcess::Options broker;
  broker.program = options.programs.gmbd;
  broker.device_flags = {"--device", "host:256MiB"};
  broker.config = Config();
  broker.dir = dir.path();
  GMB_RETURN_IF_ERROR(StartOnce(broker, nullptr));  // makes the directories
  const std::vector<std::string> ambush = {options.programs.attacker,
                                           "link_ambush",
                                           "--socket-dir",
                                           dir.path() + "/sockets/tenants/m",
                                           "--uid",
                                           absl::StrCat(kOwner),
                                           "--path",
                                           victim,
                                           "--connections",
                                           absl::StrCat(kDirectories),
                                           "--seconds",
                                           kLongEnough};
  Times attacked, control;
  std::vector<double> taken;
  for (int i = 0; i < options.rounds; ++i) {
    double cores = 0;
    GMB_RETURN_IF_ERROR(StartBeside(broker, ambush, &attacked, &cores));
    GMB_RETURN_IF_ERROR(Untouched(victim));
    taken.push_back(cores);
    const std::vector<std::string> burner = {options.programs.attacker,
                                             "control_burner",
                                             "--socket-dir",
                                             "/",
                                             "--seconds",
                                             kLongEnough,
                                             "--duty",
                                             absl::StrCat(cores)};
    GMB_RETURN_IF_ERROR(StartBeside(broker, burner, &control, &cores));
  }
  std::printf(
      "%d starts each, ms, median (worst); the attacker took %.2f cores\n",
      options.rounds, Quantile(taken, 0.5));
  Print("link_ambush", attacked);
  Print("control", control);
  return absl::OkStatus();
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; i += 2) {
    const std::string arg = argv[i];
    if (i + 1 == argc) return false;
    const std::string value = argv[i + 1];
    if (arg == "--gmbd") {
      options->programs.gmbd = value;
    } else if (arg == "--attacker") {
      options->programs.attacker = value;
    } else if (arg != "--rounds" ||
               !absl::SimpleAtoi(value, &options->rounds) ||
               options->rounds < 1) {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  gmb::bench::Options options;
  const bool help = argc == 2 && std::string(argv[1]) == "--help";
  if (help || !gmb::bench::Parse(argc, argv, &options)) {
    std::fputs(gmb::bench::kUsage, help ? stdout : stderr);
    return help ? 0 : 2;
  }
  absl::Status status = gmb::bench::FindPrograms(&options.programs);
  if (status.ok()) status = gmb::bench::Run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "start_bench: %s\n", status.ToString().c_str());
  return 1;
}
