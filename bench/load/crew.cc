// The processes of the load, seen by the one that starts and kills them.
#include "bench/load/crew.h"

#include <chrono>
#include <csignal>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/tenant_identity.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kCrewPatience = absl::Minutes(2);
// A session waits for nothing longer than for its memory, 40 s, with a broker
// that dies meanwhile.
constexpr absl::Duration kMostSilence = absl::Seconds(90);

// The words of a process about its end.
std::string WordsOf(pid_t pid, const std::string& log_path) {
  const std::string begin = absl::StrCat("pid ", pid, ", ");
  std::ifstream log(log_path);
  for (std::string line; std::getline(log, line);) {
    if (absl::StartsWith(line, begin)) return line;
  }
  return "it said nothing";
}

}  // namespace

std::string LoadTenant(uint32_t number) { return absl::StrCat("t", number); }

absl::StatusOr<Crew> Crew::Start(const CrewPlan& plan, SharedTally* tally) {
  Crew crew(plan, tally);
  (*tally)->stop = false;
  uint32_t slot = 0;
  for (uint32_t i = 0; i < plan.processes; ++i) {
    WorkerPlan worker;
    const uint32_t tenant = i % plan.tenants;
    worker.socket_dir =
        cli::TenantSocketDir(plan.socket_dir, LoadTenant(tenant));
    worker.first_slot = slot;
    worker.sessions = plan.sessions / plan.processes +
                      (i < plan.sessions % plan.processes ? 1 : 0);
    slot += worker.sessions;
    worker.session = plan.session;
    worker.session.tag = tenant + 1;
    crew.Forget(worker);
    GMB_ASSIGN_OR_RETURN(cli::ChildProcess process, crew.Launch(worker));
    crew.members_.push_back({std::move(worker), std::move(process)});
  }
  const absl::Time deadline = absl::Now() + kCrewPatience;
  while (!crew.AllAreUp()) {
    const std::vector<std::string> faults = crew.Faults();
    if (!faults.empty()) return absl::InternalError(faults.front());
    if (absl::Now() > deadline)
      return absl::DeadlineExceededError("not all sessions could be opened");
    absl::SleepFor(absl::Milliseconds(5));
  }
  return crew;
}

absl::StatusOr<cli::ChildProcess> Crew::Launch(const WorkerPlan& plan) {
  WorkerPlan seeded = plan;
  seeded.session.seed = random_();
  return cli::ChildProcess::Start({.command = WorkerCommand(seeded),
                                   .stdin_fd = tally_->fd(),
                                   .log_path = plan_.log_path});
}

pid_t Crew::pid(size_t number) const {
  return members_.at(number).process.pid();
}

// Its sessions are gone, or not open yet.
void Crew::Forget(const WorkerPlan& plan) {
  for (uint32_t i = 0; i < plan.sessions; ++i)
    (*tally_)->sessions.at(plan.first_slot + i).since_ns = 0;
}

absl::Status Crew::Kill(size_t number) {
  Member& member = members_.at(number);
  member.process.Signal(SIGKILL);
  const auto ended = member.process.Wait(absl::Now() + kCrewPatience);
  Forget(member.plan);
  return ended.status();
}

absl::Status Crew::Revive(size_t number) {
  Member& member = members_.at(number);
  GMB_ASSIGN_OR_RETURN(member.process, Launch(member.plan));
  return absl::OkStatus();
}

bool Crew::AllAreUp() const {
  for (uint32_t i = 0; i < plan_.sessions; ++i) {
    if ((*tally_)->sessions.at(i).since_ns == 0) return false;
  }
  return true;
}

std::string Crew::Stuck(const WorkerPlan& plan) const {
  const int64_t now =
      std::chrono::steady_clock::now().time_since_epoch().count();
  for (uint32_t i = 0; i < plan.sessions; ++i) {
    SessionSlot& slot = (*tally_)->sessions.at(plan.first_slot + i);
    const int64_t since = slot.since_ns;
    if (since == 0 || absl::Nanoseconds(now - since) < kMostSilence) continue;
    slot.since_ns = now;  // said once
    return absl::StrCat("session ", plan.first_slot + i, " is stuck in ",
                        kOpNames.at(static_cast<size_t>(slot.op.load())));
  }
  return "";
}

std::vector<std::string> Crew::Faults() {
  std::vector<std::string> faults;
  for (size_t i = 0; i < members_.size(); ++i) {
    Member& member = members_[i];
    if (std::string stuck = Stuck(member.plan); !stuck.empty())
      faults.push_back(absl::StrCat("pid ", pid(i), ": ", stuck));
    if (member.process.running()) continue;
    const auto how = member.process.Wait(absl::InfinitePast());
    faults.push_back(absl::StrCat("pid ", pid(i), " ended, ", how.value_or(""),
                                  ": ", WordsOf(pid(i), plan_.log_path)));
    Forget(member.plan);
    if (const absl::Status next = Revive(i); !next.ok())
      faults.push_back(next.ToString());
  }
  return faults;
}

std::vector<std::string> Crew::Finish() {
  std::vector<std::string> faults;
  (*tally_)->stop = true;
  const absl::Time deadline = absl::Now() + kCrewPatience;
  for (Member& member : members_) {
    const auto how = member.process.Wait(deadline);
    if (how.ok() && *how == "exit code 0") continue;
    const pid_t pid = member.process.pid();
    faults.push_back(absl::StrCat("pid ", pid, " at its end, ",
                                  how.ok() ? *how : how.status().ToString(),
                                  ": ", WordsOf(pid, plan_.log_path)));
  }
  members_.clear();
  return faults;
}

}  // namespace gmb::bench
