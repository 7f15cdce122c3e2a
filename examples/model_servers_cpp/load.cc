#include "load.h"

#include <random>
#include <thread>

#include "absl/time/clock.h"

namespace model_servers {
namespace {

void Ask(Caller& caller, const Target& target, uint64_t rows, Tally* tally) {
  tally->Count(caller.Infer(rows), target.expected_sums.at(rows));
}

void Mixed(const Target& target, const LoadOptions& options, uint64_t seed,
           Tally* tally) {
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<int> one_in_six(1, 6);
  std::uniform_int_distribution<int> pause_ms(0, 120);
  Caller caller(target.port);
  const absl::Time end = absl::Now() + options.together;
  while (absl::Now() < end) {
    Ask(caller, target, one_in_six(random) == 1 ? options.burst : 1, tally);
    // Requests do not come without a break; in one, memory can be lent.
    absl::SleepFor(absl::Milliseconds(pause_ms(random)));
  }
}

}  // namespace

void Tally::Count(const Reply& reply, uint64_t expected_sum) {
  ++requests;
  if (!reply.error.empty()) last_error = reply.error;
  switch (reply.kind) {
    case Reply::Kind::kRefused:
      ++refused;
      return;
    case Reply::Kind::kFailed:
      ++failed;
      return;
    case Reply::Kind::kServed:
      break;
  }
  ++served;
  if (reply.sum != expected_sum) ++wrong;
  if (reply.met_evicted) ++met_evicted;
  took.push_back(reply.took);
}

void Tally::Add(const Tally& other) {
  requests += other.requests;
  served += other.served;
  refused += other.refused;
  failed += other.failed;
  wrong += other.wrong;
  met_evicted += other.met_evicted;
  took.insert(took.end(), other.took.begin(), other.took.end());
  if (!other.last_error.empty()) last_error = other.last_error;
}

Tallies Singles(const std::vector<Target>& targets,
                const LoadOptions& options) {
  Tallies tallies(targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    Caller caller(targets[i].port);
    for (uint64_t n = 0; n < options.rounds; ++n) {
      Ask(caller, targets[i], 1, &tallies[i]);
    }
  }
  return tallies;
}

Tallies BurstsInTurn(const std::vector<Target>& targets,
                     const LoadOptions& options) {
  Tallies tallies(targets.size());
  for (uint64_t round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < targets.size(); ++i) {
      Caller caller(targets[i].port);
      for (const uint64_t rows : {options.burst, uint64_t{1}, uint64_t{1}}) {
        Ask(caller, targets[i], rows, &tallies[i]);
      }
    }
  }
  return tallies;
}

Tallies Together(const std::vector<Target>& targets,
                 const LoadOptions& options) {
  Tallies tallies(targets.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < targets.size(); ++i) {
    threads.emplace_back(
        [&, i] { Mixed(targets[i], options, options.seed + i, &tallies[i]); });
  }
  for (std::thread& thread : threads) thread.join();
  return tallies;
}

}  // namespace model_servers
