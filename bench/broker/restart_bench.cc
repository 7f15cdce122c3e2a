// How long a broker with many sessions is away when it is killed and started
// again beside its keeper.
#include <poll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/unique_fd.h"
#include "bench/broker/restart_waiter.h"
#include "bench/broker/scale_fleet.h"
#include "bench/quantile.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/keeper_process.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/tenant_identity.h"

namespace gmb::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kHelp[] =
    "usage: restart_bench [--gmbd PATH] [--sessions N] [--tenants N] "
    "[--leases N] [--processes N] [--rounds N]\n"
    "A broker of the host device with N sessions [500] of N tenants [50] in N "
    "processes [8] that hold N leases of\n"
    "2 MiB [1000] is killed N times [10] and started again when it is dead. In "
    "ms: from SIGKILL\n"
    "until its pidfd is readable, and from then until a session that acquires "
    "all the time has its\n"
    "first lease, and until the streams of all sessions are open again.\n";

struct Options {
  std::string gmbd;
  uint32_t sessions = 500;
  uint32_t tenants = 50;
  uint32_t leases = 1000;
  uint32_t processes = 8;
  uint32_t rounds = 10;
};

absl::StatusOr<Options> Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = i + 1 < argc ? argv[i + 1] : "";
    uint32_t* const number = flag == "--sessions"    ? &options.sessions
                             : flag == "--tenants"   ? &options.tenants
                             : flag == "--leases"    ? &options.leases
                             : flag == "--processes" ? &options.processes
                             : flag == "--rounds"    ? &options.rounds
                                                     : nullptr;
    const bool good = number != nullptr
                          ? absl::SimpleAtoi(value, number) && *number > 0
                          : flag == "--gmbd" && !value.empty();
    if (!good) return absl::InvalidArgumentError(kHelp);
    if (number == nullptr) options.gmbd = value;
  }
  if (!options.gmbd.empty()) return options;
  absl::StatusOr<std::string> found = cli::FindBroker();
  if (!found.ok()) return found.status();
  options.gmbd = *std::move(found);
  return options;
}

double Ms(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

struct Death {
  Clock::time_point killed;
  Clock::time_point dead;
};

absl::StatusOr<Death> Kill(pid_t pid) {
  const base::UniqueFd pidfd(
      static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return absl::ErrnoToStatus(errno, "pidfd_open");
  Death death;
  death.killed = Clock::now();
  if (::kill(pid, SIGKILL) != 0) return absl::ErrnoToStatus(errno, "kill");
  pollfd dies{pidfd.get(), POLLIN, 0};
  while (::poll(&dies, 1, -1) != 1) {
    if (errno != EINTR) return absl::ErrnoToStatus(errno, "poll");
  }
  death.dead = Clock::now();
  return death;
}

// Sessions with an open stream; INTERNAL when there are not so many in all.
absl::StatusOr<uint32_t> Streaming(const cli::BrokerProcess& broker,
                                   uint32_t sessions) {
  const absl::StatusOr<v1::ListSessionsResponse> list =
      broker.admin().ListSessions(v1::ListSessionsRequest());
  if (!list.ok()) return list.status();
  if (list->sessions_size() != static_cast<int>(sessions)) {
    return absl::InternalError(absl::StrCat(
        list->sessions_size(), " sessions are left of ", sessions));
  }
  uint32_t streaming = 0;
  for (const v1::SessionInfo& session : list->sessions())
    streaming += session.streaming() ? 1 : 0;
  return streaming;
}

struct Figures {
  std::vector<double> death;
  std::vector<double> grant;
  std::vector<double> streams;
};

void Print(const char* what, const std::vector<double>& values) {
  std::printf("%-44s %8.1f %8.1f\n", what, Quantile(values, 0.5),
              *std::max_element(values.begin(), values.end()));
}

absl::Status Round(const cli::BrokerProcess::Options& start, uint32_t sessions,
                   RestartWaiter* waiter,
                   std::unique_ptr<cli::BrokerProcess>* broker,
                   Figures* figures) {
  const absl::StatusOr<Death> death = Kill((*broker)->pid());
  if (!death.ok()) return death.status();
  waiter->Watch(death->dead);
  auto next = cli::BrokerProcess::Start(start);
  if (!next.ok()) return next.status();
  *broker = *std::move(next);
  for (uint32_t open = 0; open < sessions;) {
    const absl::StatusOr<uint32_t> now = Streaming(**broker, sessions);
    if (!now.ok()) return now.status();
    open = *now;
  }
  const Clock::time_point all = Clock::now();
  const absl::StatusOr<Clock::time_point> first = waiter->First();
  if (!first.ok()) return first.status();
  figures->death.push_back(Ms(death->killed, death->dead));
  figures->grant.push_back(Ms(death->dead, *first));
  figures->streams.push_back(Ms(death->dead, all));
  std::printf("dead after %.1f; first grant %.1f, all streams %.1f\n",
              figures->death.back(), figures->grant.back(),
              figures->streams.back());
  std::fflush(stdout);
  return absl::OkStatus();
}

std::string Tenants(uint32_t count, uint32_t sessions) {
  std::string config = "tenants:\n";
  for (uint32_t i = 0; i < count; ++i) {
    absl::StrAppend(&config, "  - {name: ", ScaleTenant(i),
                    ", limit: 100%, max_sessions: ", sessions, "}\n");
  }
  return config;
}

absl::Status Run(const Options& options) {
  rlimit limit{};
  (void)::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &limit);
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  const absl::StatusOr<cli::KeeperProcess> keeper =
      cli::KeeperProcess::Start(dir->path());
  if (!keeper.ok()) return keeper.status();
  const uint32_t sessions = options.sessions + 1;
  const cli::BrokerProcess::Options start = {
      .program = options.gmbd,
      .device_flags = {"--device",
                       absl::StrCat("host:", 4 * options.leases + 256, "MiB"),
                       "--keeper", keeper->socket()},
      .config = Tenants(options.tenants, sessions),
      .dir = dir->path()};
  auto broker = cli::BrokerProcess::Start(start);
  if (!broker.ok()) return broker.status();
  FleetPlan plan;
  plan.socket_dir = (*broker)->socket_dir();
  plan.log_path = dir->path() + "/fleet.log";
  plan.tenants = options.tenants;
  plan.sessions = options.sessions;
  plan.leases = options.leases;
  plan.processes = std::min(options.processes, options.sessions);
  const absl::StatusOr<Fleet> fleet = Fleet::Start(plan);
  if (!fleet.ok()) return fleet.status();
  const auto waiter = RestartWaiter::Start(
      cli::TenantSocketDir(plan.socket_dir, ScaleTenant(0)));
  if (!waiter.ok()) return waiter.status();
  Figures figures;
  for (uint32_t round = 0; round < options.rounds; ++round) {
    const absl::Status done =
        Round(start, sessions, waiter->get(), &*broker, &figures);
    if (!done.ok()) return done;
  }
  std::printf(
      "%u sessions, %u tenants, %u leases, %u deaths, ms\n%44s %8s %8s\n",
      options.sessions, options.tenants, options.leases, options.rounds, "",
      "median", "worst");
  Print("SIGKILL to pidfd", figures.death);
  Print("pidfd to the first grant", figures.grant);
  Print("pidfd to the last stream", figures.streams);
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], kFleetFlag) == 0)
    return RunShip(argc, argv);
  const absl::StatusOr<Options> options = Parse(argc, argv);
  if (!options.ok()) {
    std::fputs(std::string(options.status().message()).c_str(), stderr);
    return 2;
  }
  const absl::Status done = Run(*options);
  if (done.ok()) return 0;
  std::fprintf(stderr, "restart_bench: %s\n", done.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
