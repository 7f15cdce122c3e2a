// The figures that are taken of a large broker.
#include "bench/broker/scale_turns.h"

#include <atomic>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/cpu_seconds.h"
#include "client/cli/admin_client.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/installed.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kTurnPatience = absl::Minutes(3);
constexpr int kWarmUp = 20;

double Milliseconds(absl::Time since) {
  return absl::ToDoubleMilliseconds(absl::Now() - since);
}

// How long the acquire took.
absl::StatusOr<double> LeaseOnce(const ScaleStage& stage) {
  AcquireOptions options;
  options.device = stage.device();
  options.wait = kTurnPatience;
  const absl::Time start = absl::Now();
  absl::StatusOr<Lease> lease =
      stage.probe().Acquire(kScaleLeaseBytes, options);
  const double ms = Milliseconds(start);
  if (!lease.ok()) return lease.status();
  const absl::Status released = std::move(*lease).Release();
  if (!released.ok()) return released;
  return ms;
}

enum class Question { kStatus, kSetTenant };

std::vector<std::string> CommandFor(const ScaleOptions& options,
                                    const ScaleStage& stage,
                                    Question question) {
  const std::string& dir = stage.broker().socket_dir();
  const bool status = question == Question::kStatus;
  if (options.gmb.empty())
    return {cli::ThisProgram(), kAskFlag, status ? "status" : "set", dir};
  std::vector<std::string> words = {options.gmb, "--socket-dir", dir};
  if (status) {
    words.emplace_back("status");
  } else {
    // Its quota stays as it is, but is stored and looked at anew.
    words.insert(words.end(), {"tenant", "set", kProbe, "--weight", "1"});
  }
  return words;
}

// How long the command ran; none: it failed.
std::optional<double> RunCommand(const ScaleOptions& options,
                                 const ScaleStage& stage, Question question) {
  cli::ChildProcess::Options command;
  command.command = CommandFor(options, stage, question);
  command.log_path = stage.broker().socket_dir() + "/../commands.log";
  const absl::Time start = absl::Now();
  absl::StatusOr<cli::ChildProcess> process = cli::ChildProcess::Start(command);
  if (!process.ok()) return std::nullopt;
  const absl::StatusOr<std::string> end = process->Wait(start + kTurnPatience);
  if (!end.ok() || *end != "exit code 0") return std::nullopt;
  return Milliseconds(start);
}

}  // namespace

Turn MeasureTurn(const ScaleOptions& options, const ScaleStage& stage) {
  Turn turn;
  for (int i = 0; i < kWarmUp; ++i) (void)LeaseOnce(stage);
  const absl::Time end = absl::Now() + absl::Seconds(options.seconds);
  while (absl::Now() < end || turn.acquire_ms.empty()) {
    const absl::StatusOr<double> ms = LeaseOnce(stage);
    if (ms.ok()) {
      turn.acquire_ms.push_back(*ms);
    } else if (++turn.failed > options.commands) {
      break;
    }
  }
  for (int i = 0; i < options.commands; ++i) {
    const auto set = RunCommand(options, stage, Question::kSetTenant);
    const auto status = RunCommand(options, stage, Question::kStatus);
    if (set.has_value()) turn.tenant_set_ms.push_back(*set);
    if (status.has_value()) turn.status_ms.push_back(*status);
    turn.failed += (set.has_value() ? 0 : 1) + (status.has_value() ? 0 : 1);
  }
  return turn;
}

double IdleCpu(const ScaleOptions& options, const ScaleStage& stage) {
  absl::SleepFor(absl::Seconds(1));  // what was just released has settled
  const std::string pid = absl::StrCat(stage.broker().pid());
  const double before = CpuSeconds(pid);
  absl::SleepFor(absl::Seconds(options.idle_seconds));
  return 100 * (CpuSeconds(pid) - before) / options.idle_seconds;
}

int Ask(int argc, char** argv) {
  if (argc != 4) return 2;
  const absl::StatusOr<cli::AdminClient> admin =
      cli::AdminClient::Connect(argv[3]);
  if (!admin.ok()) return 1;
  if (std::string(argv[2]) == "status")
    return admin->GetStatus(v1::GetStatusRequest()).ok() ? 0 : 1;
  v1::SetTenantRequest request;
  request.set_name(kProbe);
  request.set_weight(1);
  return admin->SetTenant(request).ok() ? 0 : 1;
}

AfterKill KillFleet(const ScaleOptions& options, ScaleStage* stage) {
  AfterKill after;
  const absl::Time killed = absl::Now();
  std::atomic<bool> back = false;
  stage->KillFleet();
  std::thread asking([&] {
    while (!back) {
      if (const auto ms = RunCommand(options, *stage, Question::kStatus)) {
        after.status_ms.push_back(*ms);
      } else {
        ++after.failed;
      }
    }
  });
  stage->EndWaiting();
  while (absl::Now() < killed + kTurnPatience) {
    const absl::StatusOr<uint64_t> bytes = stage->BytesOut();
    if (bytes.ok() && *bytes == 0) {
      after.back_s = absl::ToDoubleSeconds(absl::Now() - killed);
      break;
    }
    absl::SleepFor(absl::Milliseconds(20));
  }
  back = true;
  asking.join();
  return after;
}

}  // namespace gmb::bench
