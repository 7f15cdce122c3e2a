// A process of the load.
#include "bench/load/worker.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "client/cli/exit_code.h"
#include "client/cli/installed.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kConnectPatience = absl::Minutes(1);
constexpr absl::Duration kParkAfter = absl::Milliseconds(2);
constexpr int kNumbers = 11;

// In the order of the words.
std::array<uint64_t, kNumbers> NumbersOf(const WorkerPlan& plan) {
  const SessionPlan& session = plan.session;
  return {plan.sessions,
          plan.first_slot,
          session.tag,
          session.seed,
          session.mix.acquire,
          session.mix.release,
          session.mix.work,
          session.mix.rest,
          session.most_bytes,
          session.most_leases,
          static_cast<uint64_t>(absl::ToInt64Microseconds(session.pause))};
}

bool ReadPlan(int argc, char** argv, WorkerPlan* plan) {
  constexpr int kFirst = 3;
  if (argc != kFirst + kNumbers) return false;
  std::array<uint64_t, kNumbers> numbers{};
  for (int i = 0; i < kNumbers; ++i) {
    if (!absl::SimpleAtoi(argv[kFirst + i], &numbers.at(i))) return false;
  }
  plan->socket_dir = argv[2];
  plan->sessions = static_cast<uint32_t>(numbers[0]);
  plan->first_slot = static_cast<uint32_t>(numbers[1]);
  plan->session = {.tag = numbers[2],
                   .seed = numbers[3],
                   .mix = {.acquire = static_cast<uint32_t>(numbers[4]),
                           .release = static_cast<uint32_t>(numbers[5]),
                           .work = static_cast<uint32_t>(numbers[6]),
                           .rest = static_cast<uint32_t>(numbers[7])},
                   .most_bytes = numbers[8],
                   .most_leases = static_cast<uint32_t>(numbers[9]),
                   .pause = absl::Microseconds(numbers[10])};
  return plan->first_slot + plan->sessions <= Tally::kMostSessions;
}

// As a program does that is to run whatever happens to its broker: the library
// itself tries for 2 s.
absl::StatusOr<std::unique_ptr<Client>> ConnectInTheEnd(
    const std::string& socket_dir, Tally* tally) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  options.connect_timeout = kConnectPatience;
  const absl::Time deadline = absl::Now() + kConnectPatience;
  while (true) {
    absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(options);
    if (!absl::IsUnavailable(client.status()) || absl::Now() > deadline)
      return client;
    ++tally->connects_again;
  }
}

absl::Status Live(const WorkerPlan& plan, uint32_t number, Tally* tally) {
  const absl::Time began = absl::Now();
  absl::StatusOr<std::unique_ptr<Client>> client =
      ConnectInTheEnd(plan.socket_dir, tally);
  GMB_RETURN_IF_ERROR(client.status());
  tally->of(Op::kConnect).Add(absl::Now() - began);
  GMB_RETURN_IF_ERROR((*client)->TurnGateOn({.park_after = kParkAfter}));
  SessionSlot* const slot = &tally->sessions.at(plan.first_slot + number);
  slot->op = Op::kConnect;
  slot->since_ns = std::chrono::steady_clock::now().time_since_epoch().count();
  SessionPlan own = plan.session;
  own.seed += number;
  LoadSession session(client->get(), own, slot, tally);
  while (!tally->stop) GMB_RETURN_IF_ERROR(session.Step());
  return session.Finish();
}

}  // namespace

std::vector<std::string> WorkerCommand(const WorkerPlan& plan) {
  std::vector<std::string> words = {cli::ThisProgram(), kWorkerFlag,
                                    plan.socket_dir};
  for (const uint64_t number : NumbersOf(plan))
    words.push_back(absl::StrCat(number));
  return words;
}

int RunWorker(int argc, char** argv) {
  WorkerPlan plan;
  if (!ReadPlan(argc, argv, &plan))
    return static_cast<int>(cli::ExitCode::kUsage);
  const absl::StatusOr<SharedTally> tally = SharedTally::Map(STDIN_FILENO);
  if (!tally.ok()) return static_cast<int>(cli::ExitCode::kFailed);
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < plan.sessions; ++i) {
    threads.emplace_back([&, i] {
      const absl::Status lived = Live(plan, i, &**tally);
      if (lived.ok()) return;
      std::fprintf(stderr, "pid %d, session %u: %s\n", ::getpid(),
                   plan.first_slot + i, lived.ToString().c_str());
      ::_exit(static_cast<int>(cli::ExitCode::kWrongContents));
    });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace gmb::bench
