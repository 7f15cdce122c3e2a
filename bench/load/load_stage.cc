// The broker under load, and what can happen to it.
#include "bench/load/load_stage.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/demo/log_tail.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kLoadPatience = absl::Minutes(1);

std::vector<std::string> FlagsOf(const LoadOptions& options,
                                 const std::string& keeper_socket) {
  std::vector<std::string> flags = {
      "--host-pool", absl::StrCat(2 * options.pool_mib, "MiB"),
      "--keeper",    keeper_socket,
      "--reuse-for", "200ms",
      "--device"};
  const std::string pool = absl::StrCat(options.pool_mib, "MiB");
  if (options.device == "host") {
    flags.push_back(absl::StrCat("host:", pool));
  } else {
    flags.insert(flags.end(), {options.device, "--pool", pool});
  }
  return flags;
}

std::string TenantsOf(const LoadOptions& options) {
  std::string yaml = "tenants:\n";
  // The sessions of one that was killed may still be there beside the next
  // one's.
  const uint32_t sessions = 2 * options.sessions;
  // Half of the pool is guaranteed.
  const uint32_t guarantee = options.pool_mib / options.tenants / 2;
  for (uint32_t i = 0; i < options.tenants; ++i) {
    absl::StrAppend(&yaml, "  - {name: ", LoadTenant(i),
                    ", guarantee: ", guarantee,
                    "MiB, limit: 100%, max_sessions: ", sessions, "}\n");
  }
  return yaml;
}

bool AwaitThat(const std::function<bool()>& holds) {
  const absl::Time deadline = absl::Now() + kLoadPatience;
  while (!holds()) {
    if (absl::Now() > deadline) return false;
    absl::SleepFor(absl::Milliseconds(2));
  }
  return true;
}

bool SaysAfter(const std::string& path, uint64_t bytes,
               const std::string& word) {
  std::ifstream log(path);
  log.seekg(static_cast<std::streamoff>(bytes));
  for (std::string line; std::getline(log, line);) {
    if (absl::StrContains(line, word)) return true;
  }
  return false;
}

std::string NotBack(const v1::GetStatusResponse& status) {
  std::string left;
  const auto add = [&left](const char* what, uint64_t number) {
    if (number > 0) absl::StrAppend(&left, " ", what, " ", number);
  };
  add("sessions", status.sessions());
  add("leases", status.leases());
  add("host pool: reserved", status.host_pool().reserved_bytes());
  add("placed", status.host_pool().placed_bytes());
  add("held", status.host_pool().held_bytes());
  for (const v1::PoolStatus& pool : status.pools()) {
    add("granted", pool.granted_bytes());
    add("returned", pool.returned_bytes());
    add("scrubbing", pool.scrubbing_bytes());
    add("unreturned", pool.unreturned_bytes());
    add("missing", pool.missing_bytes());
    add("waiting", pool.waiting());
    add("not free",
        pool.capacity_bytes() - pool.ready_bytes() - pool.float_bytes());
  }
  return left;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LoadStage>> LoadStage::Set(
    const LoadOptions& options, const std::string& dir) {
  std::unique_ptr<LoadStage> stage(new LoadStage(options, dir));
  GMB_ASSIGN_OR_RETURN(cli::KeeperProcess keeper,
                       cli::KeeperProcess::Start(dir));
  stage->keeper_.emplace(std::move(keeper));
  cli::BrokerProcess::Options gmbd;
  gmbd.program = options.gmbd;
  gmbd.device_flags = FlagsOf(options, stage->keeper_->socket());
  gmbd.config = TenantsOf(options);
  gmbd.dir = dir;
  GMB_ASSIGN_OR_RETURN(stage->broker_, cli::BrokerProcess::Start(gmbd));
  // On a GPU page-locking opens the driver's own fds.
  if (!AwaitThat([&] { return stage->HasHostPool(); }))
    return absl::DeadlineExceededError("the host pool is not prepared in time");
  return stage;
}

absl::StatusOr<Crew> LoadStage::StartCrew(SharedTally* tally) const {
  CrewPlan plan;
  plan.socket_dir = broker_->socket_dir();
  plan.log_path = dir_ + "/clients.log";
  plan.tenants = options_.tenants;
  plan.sessions = options_.sessions;
  plan.processes = options_.processes;
  plan.session.mix = options_.mix;
  plan.session.most_bytes = uint64_t{options_.lease_mib} << 20;
  plan.session.most_leases = options_.leases;
  plan.session.pause = options_.pause;
  plan.seed = options_.seed;
  return Crew::Start(plan, tally);
}

absl::Status LoadStage::KillClient(size_t number, Crew* crew,
                                   Tally* tally) const {
  const pid_t pid = crew->pid(number);
  const absl::Time killed = absl::Now();
  GMB_RETURN_IF_ERROR(crew->Kill(number));
  const bool gone = AwaitThat([&] {
    const auto list = broker_->admin().ListSessions(v1::ListSessionsRequest());
    if (!list.ok()) return false;
    for (const v1::SessionInfo& session : list->sessions()) {
      if (session.pid() == pid) return false;
    }
    return true;
  });
  tally->of(Op::kKill).Add(absl::Now() - killed);
  if (!gone)
    return absl::InternalError("sessions of a dead process stay with gmbd");
  return crew->Revive(number);
}

absl::Status LoadStage::KillBroker(std::optional<absl::Duration> again_after) {
  GMB_RETURN_IF_ERROR(broker_->Kill(kLoadPatience).status());
  if (again_after.has_value()) {
    GMB_RETURN_IF_ERROR(broker_->Launch());
    absl::SleepFor(*again_after);
    GMB_RETURN_IF_ERROR(broker_->Kill(kLoadPatience).status());
  }
  return broker_->StartAgain();
}

absl::Status LoadStage::KillKeeper() {
  const std::string log = dir_ + "/gmbd.log";
  const uint64_t before = std::filesystem::file_size(log);
  keeper_.reset();
  GMB_ASSIGN_OR_RETURN(cli::KeeperProcess next,
                       cli::KeeperProcess::Start(dir_));
  keeper_.emplace(std::move(next));
  if (AwaitThat([&] { return SaysAfter(log, before, " keeper_found"); }))
    return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("gmbd has not filled the next keeper; ", cli::LogTail(log)));
}

bool LoadStage::HasHostPool() const {
  const auto status = broker_->admin().GetStatus(v1::GetStatusRequest());
  return status.ok() && status->host_pool().done();
}

std::string LoadStage::WhatIsLeft() const {
  std::string left;
  if (AwaitThat([&] {
        const auto status = broker_->admin().GetStatus(v1::GetStatusRequest());
        left = status.ok() ? NotBack(*status) : status.status().ToString();
        return left.empty();
      }))
    return "";
  return left;
}

absl::Status LoadStage::Stop() {
  const auto broker = broker_->Stop(kLoadPatience);
  if (broker.value_or("") != "exit code 0") {
    return absl::InternalError(
        absl::StrCat("gmbd at its end: ", broker.value_or("it runs on"), "; ",
                     cli::LogTail(dir_ + "/gmbd.log")));
  }
  // It ends by itself once its broker has nothing left with it.
  const auto keeper = keeper_->AwaitEnd(kLoadPatience);
  if (keeper.value_or("") == "exit code 0") return absl::OkStatus();
  return absl::InternalError(
      absl::StrCat("gmb-keeper at its end: ", keeper.value_or("it runs on"),
                   "; ", cli::LogTail(dir_ + "/keeper.log")));
}

}  // namespace gmb::bench
