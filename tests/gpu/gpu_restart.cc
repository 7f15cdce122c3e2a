#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "gmb/client.h"
#include "proto/amount_text.h"
#include "tests/gpu/lease_pattern.h"

// A client whose broker is killed. It is told what to do on its standard input,
// a line each, and answers with one line: "ok ..." or "failed ...".
//
//   gpu_restart tenant SOCKET_DIR
//     gate              turns its gate on; it parks after 20 ms
//     lease BYTES COUNT acquires leases and fills them with a pattern
//     take BYTES        acquires one and leaves it as it is
//     check             looks at every word of what was filled, in a scope
//     give              releases what `take` took
//   gpu_restart kernels SOCKET_DIR BYTES   fills a lease again and again
//     longest           from the end of one to the end of the next, since it
//                       was asked last
//   gpu_restart pairs SOCKET_DIR BYTES     acquires and releases again and again
//     tally             how long that took since it was asked last
//
// `pairs` says each call that took long at once, with the time of its end
// (CLOCK_MONOTONIC in nanoseconds). All end when their input does.
namespace gmb::scenario {
namespace {

using Clock = std::chrono::steady_clock;

constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr double kLongMs = 5;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

void Answer(const absl::StatusOr<std::string>& answer) {
  Say(answer.ok() ? absl::StrCat("ok ", *answer)
                  : absl::StrCat("failed ", answer.status().ToString()));
}

// A line is there, or the end.
bool IsTold() {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  return poll(&in, 1, 0) > 0;
}

class Tenant {
 public:
  Tenant(Client* client, LeasePattern* pattern)
      : client_(client), pattern_(pattern) {}

  absl::StatusOr<std::string> Do(const std::vector<std::string>& words) {
    const std::string& what = words[0];
    if (what == "check") return Check();
    if (what == "give") return Give();
    if (what == "gate") {
      GateOptions options;
      options.park_after = absl::Milliseconds(20);
      const absl::Status on = client_->TurnGateOn(options);
      if (!on.ok()) return on;
      return std::string("gate");
    }
    if (words.size() < 2) return absl::InvalidArgumentError(what);
    const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(words[1]);
    if (!bytes.ok()) return bytes.status();
    if (what == "take") return Take(*bytes);
    int count = 0;
    if (what == "lease" && words.size() == 3 &&
        absl::SimpleAtoi(words[2], &count)) {
      return Fill(*bytes, count);
    }
    return absl::InvalidArgumentError(what);
  }

 private:
  struct Filled {
    Lease lease;
    uint64_t seed;
  };

  absl::StatusOr<Lease> Acquire(uint64_t bytes) {
    AcquireOptions options;
    options.wait = kPatience;
    return client_->Acquire(bytes, options);
  }

  // Each lease has a pattern of its own, and it is a pattern: words are wrong
  // where another one is looked for.
  absl::StatusOr<std::string> Fill(uint64_t bytes, int count) {
    for (int i = 0; i < count; ++i) {
      absl::StatusOr<Lease> lease = Acquire(bytes);
      if (!lease.ok()) return lease.status();
      const absl::StatusOr<Scope> scope = client_->Enter(kPatience);
      if (!scope.ok()) return scope.status();
      const uint64_t seed = lease->id() << 40;
      const absl::Status filled = pattern_->Fill(&*lease, seed);
      if (!filled.ok()) return filled;
      const auto wrong = pattern_->CountWrong(*lease, seed + 1);
      if (!wrong.ok()) return wrong.status();
      if (*wrong != lease->size_bytes() / sizeof(uint64_t))
        return absl::InternalError("the pattern shows no differences");
      filled_bytes_ += lease->size_bytes();
      filled_.push_back({*std::move(lease), seed});
    }
    return absl::StrCat("filled ", filled_bytes_, " bytes in ", filled_.size(),
                        " leases by ", pattern_->name());
  }

  absl::StatusOr<std::string> Check() {
    const Clock::time_point start = Clock::now();
    const absl::StatusOr<Scope> scope = client_->Enter(kPatience);
    if (!scope.ok()) return scope.status();
    const double entered = MsSince(start);
    for (const Filled& filled : filled_) {
      const auto wrong = pattern_->CountWrong(filled.lease, filled.seed);
      if (!wrong.ok()) return wrong.status();
      if (*wrong > 0) {
        return absl::DataLossError(absl::StrCat(
            *wrong, " words of lease ", filled.lease.id(), " are wrong"));
      }
    }
    return absl::StrFormat("bytes %d entered_ms %.1f looked_ms %.1f",
                           filled_bytes_, entered, MsSince(start) - entered);
  }

  absl::StatusOr<std::string> Take(uint64_t bytes) {
    const Clock::time_point start = Clock::now();
    absl::StatusOr<Lease> lease = Acquire(bytes);
    if (!lease.ok()) return lease.status();
    taken_.push_back(*std::move(lease));
    return absl::StrFormat("took_ms %.1f", MsSince(start));
  }

  absl::StatusOr<std::string> Give() {
    for (Lease& lease : taken_) {
      const absl::Status released = std::move(lease).Release();
      if (!released.ok()) return released;
    }
    taken_.clear();
    return std::string("given");
  }

  Client* const client_;
  LeasePattern* const pattern_;
  std::vector<Filled> filled_;
  uint64_t filled_bytes_ = 0;
  std::vector<Lease> taken_;
};

absl::Status RunTenant(Client* client, LeasePattern* pattern) {
  Tenant tenant(client, pattern);
  for (std::string line; std::getline(std::cin, line) && line != "end";)
    Answer(tenant.Do(absl::StrSplit(line, ' ')));
  return absl::OkStatus();
}

absl::Status RunKernels(Client* client, LeasePattern* pattern, uint64_t bytes) {
  absl::StatusOr<Lease> lease = client->Acquire(bytes);
  if (!lease.ok()) return lease.status();
  Clock::time_point last = Clock::now();
  double longest = 0;
  double sum = 0;
  uint64_t count = 0;
  for (uint64_t seed = 0;; ++seed) {
    const absl::Status filled = pattern->Fill(&*lease, seed);
    if (!filled.ok()) return filled;
    const double took = MsSince(last);
    last = Clock::now();
    longest = std::max(longest, took);
    sum += took;
    ++count;
    if (!IsTold()) continue;
    if (std::string line; !std::getline(std::cin, line) || line == "end")
      return absl::OkStatus();
    Answer(absl::StrFormat("longest_ms %.3f mean_ms %.3f of %d", longest,
                           sum / static_cast<double>(count), count));
    longest = sum = 0;
    count = 0;
    last = Clock::now();
  }
}

void SayIfLong(const char* what, double took) {
  if (took < kLongMs) return;
  Say(absl::StrFormat("%s at_ns %d took_ms %.1f", what,
                      Clock::now().time_since_epoch().count(), took));
}

std::string Tally(std::vector<double>* took) {
  if (took->empty()) return "pairs 0";
  std::sort(took->begin(), took->end());
  std::string text =
      absl::StrFormat("pairs %d median_us %.0f p99_us %.0f longest_ms %.1f",
                      took->size(), 1000 * (*took)[took->size() / 2],
                      1000 * (*took)[took->size() * 99 / 100], took->back());
  took->clear();
  return text;
}

absl::Status RunPairs(Client* client, uint64_t bytes) {
  AcquireOptions options;
  options.wait = kPatience;
  std::vector<double> took;
  for (;;) {
    const Clock::time_point start = Clock::now();
    absl::StatusOr<Lease> lease = client->Acquire(bytes, options);
    if (!lease.ok()) return lease.status();
    SayIfLong("granted", MsSince(start));
    const Clock::time_point granted = Clock::now();
    const absl::Status released = std::move(*lease).Release();
    if (!released.ok()) return released;
    SayIfLong("released", MsSince(granted));
    took.push_back(MsSince(start));
    if (!IsTold()) continue;
    if (std::string line; !std::getline(std::cin, line) || line == "end")
      return absl::OkStatus();
    Answer(Tally(&took));
  }
}

absl::Status Run(const std::string& role, const std::string& socket_dir,
                 const std::string& size) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(size);
  if (!bytes.ok()) return bytes.status();
  ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  auto pattern = LeasePattern::For((*client)->devices().front());
  if (!pattern.ok()) return pattern.status();
  Say("ok connected");
  if (role == "kernels")
    return RunKernels(client->get(), pattern->get(), *bytes);
  if (role == "pairs") return RunPairs(client->get(), *bytes);
  return RunTenant(client->get(), pattern->get());
}

}  // namespace
}  // namespace gmb::scenario

int main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  const bool loops = role == "kernels" || role == "pairs";
  if (!(loops && argc == 4) && !(role == "tenant" && argc == 3)) {
    std::fprintf(stderr,
                 "usage: gpu_restart tenant SOCKET_DIR\n"
                 "       gpu_restart kernels|pairs SOCKET_DIR BYTES\n");
    return 2;
  }
  const absl::Status status =
      gmb::scenario::Run(role, argv[2], loops ? argv[3] : "1");
  if (status.ok()) return 0;
  std::printf("failed %s\n", status.ToString().c_str());
  return 1;
}
