// A few seconds of an attack, or of processes that take the same processor time
// and leave the broker alone.
#include "bench/attack/attack_round.h"

#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/tenant_identity.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kSample = absl::Milliseconds(100);
constexpr absl::Duration kRoundPatience = absl::Seconds(30);
constexpr char kLongEnough[] = "600";  // it is stopped before

// Of the children that have been waited for.
double ChildrenSeconds() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return absl::ToDoubleSeconds(absl::DurationFromTimeval(usage.ru_utime) +
                               absl::DurationFromTimeval(usage.ru_stime));
}

std::string LastLine(const std::string& path) {
  std::ifstream file(path);
  std::string last;
  for (std::string line; std::getline(file, line);) last = line;
  return last;
}

double BrokerSeconds(pid_t broker) {
  clockid_t clock = 0;
  timespec time{};
  if (::clock_getcpuclockid(broker, &clock) != 0 ||
      ::clock_gettime(clock, &time) != 0) {
    return 0;
  }
  return absl::ToDoubleSeconds(absl::DurationFromTimespec(time));
}

std::string WordFor(const RoundSetup& setup, const std::string& word) {
  if (word == kDirOfAnother)
    return cli::TenantSocketDir(setup.socket_dir, kOther);
  if (word == kVictim) return absl::StrCat(setup.log_path, ".0");
  return word == kThisProcess ? absl::StrCat(::getpid()) : word;
}

using Commands = std::vector<std::vector<std::string>>;

absl::StatusOr<std::vector<cli::ChildProcess>> StartAll(
    const std::string& log_path, const Commands& commands) {
  std::vector<cli::ChildProcess> processes;
  for (size_t i = 0; i < commands.size(); ++i) {
    cli::ChildProcess::Options options;
    options.command = commands[i];
    options.log_path = absl::StrCat(log_path, ".", i);
    std::error_code error;
    std::filesystem::remove(options.log_path, error);
    auto process = cli::ChildProcess::Start(options);
    if (!process.ok()) return process.status();
    processes.push_back(*std::move(process));
  }
  return processes;
}

absl::StatusOr<Round> Run(const RoundSetup& setup, const AttackSpec& attack,
                          const Commands& commands) {
  auto others = Others::Start(setup.socket_dir);
  if (!others.ok()) return others.status();
  auto operating = Operator::Start(setup.socket_dir, attack.work);
  if (!operating.ok()) return operating.status();
  const double seconds_before = ChildrenSeconds();
  const double broker_before = BrokerSeconds(setup.broker);
  const absl::Time start = absl::Now();
  auto processes = StartAll(setup.log_path, commands);
  if (!processes.ok()) return processes.status();
  Round round;
  while (absl::Now() < start + setup.duration) {
    absl::SleepFor(kSample);
    const Held now = HeldBy(setup.broker);
    round.most.anonymous_kib =
        std::max(round.most.anonymous_kib, now.anonymous_kib);
    round.most.fds = std::max(round.most.fds, now.fds);
    round.most.threads = std::max(round.most.threads, now.threads);
  }
  round.seen = (*others)->Stop();  // the attack goes on meanwhile
  const double gone = absl::ToDoubleSeconds(absl::Now() - start);
  round.broker_cores = (BrokerSeconds(setup.broker) - broker_before) / gone;
  for (const cli::ChildProcess& process : *processes) process.Signal(SIGTERM);
  for (cli::ChildProcess& process : *processes) {
    const auto ended = process.Wait(absl::Now() + kRoundPatience);
    if (!ended.ok()) return ended.status();
    if (*ended != "exit code 0") {
      return absl::UnavailableError(
          absl::StrCat("an attacker ended with ", *ended, ": ",
                       LastLine(absl::StrCat(setup.log_path, ".0"))));
    }
  }
  round.cores =
      (ChildrenSeconds() - seconds_before) / gone / (attack.shared_too ? 2 : 1);
  if (const absl::Status over = (*operating)->Stop(); !over.ok()) return over;
  round.told = LastLine(absl::StrCat(setup.log_path, ".0"));
  return round;
}

}  // namespace

Held HeldBy(pid_t broker) {
  Held held;
  std::ifstream status(absl::StrCat("/proc/", broker, "/status"));
  for (std::string word; status >> word;) {
    if (word == "RssAnon:") status >> held.anonymous_kib;
    if (word == "Threads:") status >> held.threads;
  }
  std::error_code error;
  const std::filesystem::directory_iterator fds(
      absl::StrCat("/proc/", broker, "/fd"), error);
  for (const auto& fd : fds) {
    (void)fd;
    ++held.fds;
  }
  return held;
}

absl::StatusOr<Round> RunAttack(const RoundSetup& setup,
                                const AttackSpec& attack) {
  std::vector<std::string> dirs = {
      attack.by_operators ? setup.socket_dir + "/admin"
                          : cli::TenantSocketDir(setup.socket_dir, kMallory)};
  if (attack.shared_too) dirs.push_back(setup.socket_dir);
  Commands commands;
  for (const std::string& dir : dirs) {
    std::vector<std::string> command = {setup.attacker};
    for (const std::string& word : attack.words)
      command.push_back(WordFor(setup, word));
    command.insert(command.end(),
                   {"--socket-dir", dir, "--seconds", kLongEnough});
    commands.push_back(std::move(command));
  }
  return Run(setup, attack, commands);
}

absl::StatusOr<Round> RunControl(const RoundSetup& setup,
                                 const AttackSpec& attack, double cores) {
  const std::vector<std::string> command = {
      setup.attacker, "control_burner",
      "--socket-dir", "/",
      "--seconds",    kLongEnough,
      "--duty",       absl::StrCat(cores / attack.processes),
      "--fill",       absl::StrCat(attack.fill),
  };
  const int attackers = attack.shared_too ? 2 : 1;
  return Run(
      setup, attack,
      Commands(static_cast<size_t>(attackers * attack.processes), command));
}

}  // namespace gmb::bench
