#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gmb/client.h"
#include "proto/amount_text.h"
#include "tests/gpu/lease_pattern.h"

// A tenant that looks for other tenants' bytes in all memory that it gets: in
// new leases, and in those that were away meanwhile. It never writes itself, so
// each word that is not zero is somebody else's.
//
//   gpu_isolation attacker SOCKET_DIR VICTIMS_SOCKET_DIR BYTES KEPT ROUNDS
//   gpu_isolation victim SOCKET_DIR BYTES KEPT SEED
//
// In each round the attacker leases BYTES, KEPT of them with contents, and
// parks. A victim, which is a process of its own, takes all of them, fills them
// with a pattern, and ends as its turn is: it releases them, or is killed, or
// is killed while its own contents are in host memory. Prints a line a round,
// and at the end "rounds N bytes N foreign N".
namespace gmb::scenario {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(1);
constexpr int kPieces = 8;

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

struct Tenant {
  std::unique_ptr<Client> client;
  std::unique_ptr<LeasePattern> pattern;
  std::vector<Lease> leases;
};

absl::StatusOr<Tenant> ConnectTo(const std::string& socket_dir) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  GateOptions gate;
  gate.park_after = absl::Milliseconds(1);
  const absl::Status on = (*client)->TurnGateOn(gate);
  if (!on.ok()) return on;
  auto pattern = LeasePattern::For((*client)->devices().front());
  if (!pattern.ok()) return pattern.status();
  return Tenant{*std::move(client), *std::move(pattern), {}};
}

absl::Status AcquireIn(uint64_t bytes, Contents contents, Tenant* tenant) {
  if (bytes == 0) return absl::OkStatus();
  AcquireOptions options;
  options.wait = kPatience;
  options.contents = contents;
  for (int i = 0; i < kPieces; ++i) {
    auto lease = tenant->client->Acquire(bytes / kPieces, options);
    if (!lease.ok()) return lease.status();
    tenant->leases.push_back(*std::move(lease));
  }
  return absl::OkStatus();
}

absl::Status AcquireAll(uint64_t bytes, uint64_t kept, Tenant* tenant) {
  absl::Status status = AcquireIn(kept, Contents::kPreserve, tenant);
  if (status.ok()) status = AcquireIn(bytes - kept, Contents::kDiscard, tenant);
  return status;
}

absl::Status ReleaseAll(Tenant* tenant) {
  absl::Status status;
  for (Lease& lease : tenant->leases) status.Update(std::move(lease).Release());
  tenant->leases.clear();
  return status;
}

// How a victim ends: by what the attacker writes to it.
absl::Status RunVictim(const std::string& socket_dir, uint64_t bytes,
                       uint64_t kept, uint64_t seed) {
  absl::StatusOr<Tenant> tenant = ConnectTo(socket_dir);
  if (!tenant.ok()) return tenant.status();
  absl::Status status = AcquireAll(bytes, kept, &*tenant);
  if (!status.ok()) return status;
  {
    const absl::StatusOr<Scope> scope = tenant->client->Enter(kPatience);
    if (!scope.ok()) return scope.status();
    for (Lease& lease : tenant->leases) {
      status = tenant->pattern->Fill(&lease, seed + 1);
      if (!status.ok()) return status;
      const auto seen = tenant->pattern->CountNonZero(lease);
      if (!seen.ok()) return seen.status();
      if (*seen != lease.size_bytes() / sizeof(uint64_t))
        return absl::InternalError("the pattern would not be seen");
    }
  }
  Say("filled");
  std::string way;
  std::getline(std::cin, way);
  if (way != "release") return absl::AbortedError("the attacker has gone");
  return ReleaseAll(&*tenant);
}

// A victim's process, and the pipes to it.
class Victim {
 public:
  Victim(const std::string& socket_dir, uint64_t bytes, uint64_t kept,
         int round) {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    if (::pipe2(in.data(), O_CLOEXEC) != 0) return;
    if (::pipe2(out.data(), O_CLOEXEC) != 0) return;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
    std::vector<std::string> words = {"gpu_isolation",    "victim",
                                      socket_dir,         absl::StrCat(bytes),
                                      absl::StrCat(kept), absl::StrCat(round)};
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    if (::posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr,
                      arguments.data(), environ) != 0)
      pid_ = -1;
    posix_spawn_file_actions_destroy(&actions);
    ::close(in[0]);
    ::close(out[1]);
    to_ = in[1];
    from_ = ::fdopen(out[0], "r");
  }
  ~Victim() {
    Kill();
    if (to_ >= 0) ::close(to_);
    if (from_ != nullptr) std::fclose(from_);
  }
  Victim(const Victim&) = delete;
  Victim& operator=(const Victim&) = delete;

  // Until all memory is its own, and filled.
  absl::Status AwaitFilled() {
    std::array<char, 256> line{};
    const bool said = from_ != nullptr &&
                      std::fgets(line.data(), line.size(), from_) != nullptr;
    if (said && std::string(line.data()) == "filled\n") return absl::OkStatus();
    return absl::InternalError(absl::StrCat("a victim fails: ", line.data()));
  }
  absl::Status Release() {
    constexpr char kWord[] = "release\n";
    if (::write(to_, kWord, sizeof(kWord) - 1) < 0)
      return absl::InternalError("a victim does not read");
    const int status = End();
    return status == 0 ? absl::OkStatus()
                       : absl::InternalError("a victim does not release");
  }
  void Kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    (void)End();
  }

 private:
  int End() {
    int status = -1;
    ::waitpid(std::exchange(pid_, -1), &status, 0);
    return status;
  }

  pid_t pid_ = -1;
  int to_ = -1;
  std::FILE* from_ = nullptr;
};

class Attacker {
 public:
  Attacker(Tenant tenant, std::string victims, uint64_t bytes, uint64_t kept)
      : tenant_(std::move(tenant)),
        victims_(std::move(victims)),
        bytes_(bytes),
        kept_(kept) {}

  absl::Status Round(int round) {
    absl::Status status;
    // Every second time the same leases, which only come back.
    if (tenant_.leases.empty()) status = AcquireAll(bytes_, kept_, &tenant_);
    if (status.ok()) status = Look();
    if (!status.ok()) return status;
    Victim victim(victims_, bytes_, kept_, round);
    status = victim.AwaitFilled();
    if (!status.ok()) return status;
    constexpr std::array<const char*, 3> kWays = {"released", "killed",
                                                  "killed while away"};
    const int way = round % static_cast<int>(kWays.size());
    if (way == 0) status = victim.Release();
    if (way == 1) victim.Kill();
    if (status.ok()) status = Look();
    victim.Kill();
    if (status.ok() && way == 2) status = Look();
    Say(absl::StrCat("round ", round, " ", kWays[way], ", looked at ", looked_,
                     " bytes so far, foreign ", foreign_));
    if (status.ok() && round % 2 == 1) status = ReleaseAll(&tenant_);
    return status;
  }

  [[nodiscard]] uint64_t looked() const { return looked_; }
  [[nodiscard]] uint64_t foreign() const { return foreign_; }

 private:
  absl::Status Look() {
    const absl::StatusOr<Scope> scope = tenant_.client->Enter(kPatience);
    if (!scope.ok()) return scope.status();
    for (const Lease& lease : tenant_.leases) {
      const auto foreign = tenant_.pattern->CountNonZero(lease);
      if (!foreign.ok()) return foreign.status();
      looked_ += lease.size_bytes();
      foreign_ += *foreign;
    }
    return absl::OkStatus();
  }

  Tenant tenant_;
  const std::string victims_;
  const uint64_t bytes_;
  const uint64_t kept_;
  uint64_t looked_ = 0;
  uint64_t foreign_ = 0;
};

absl::Status RunAttacker(const std::string& socket_dir,
                         const std::string& victims, uint64_t bytes,
                         uint64_t kept, int rounds) {
  absl::StatusOr<Tenant> tenant = ConnectTo(socket_dir);
  if (!tenant.ok()) return tenant.status();
  Say(absl::StrCat("looks by ", tenant->pattern->name()));
  Attacker attacker(*std::move(tenant), victims, bytes, kept);
  absl::Status status;
  int round = 0;
  for (; status.ok() && round < rounds; ++round) status = attacker.Round(round);
  Say(absl::StrCat("rounds ", round, " bytes ", attacker.looked(), " foreign ",
                   attacker.foreign()));
  if (status.ok() && attacker.foreign() > 0)
    return absl::DataLossError("other tenants' bytes were seen");
  return status;
}

absl::Status Run(const std::vector<std::string>& words) {
  const bool attacks = words.size() == 7 && words[1] == "attacker";
  const bool is_victim = words.size() == 6 && words[1] == "victim";
  if (!attacks && !is_victim)
    return absl::InvalidArgumentError("usage: see gpu_isolation.cc");
  const size_t at = attacks ? 4 : 3;
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(words[at]);
  if (!bytes.ok()) return bytes.status();
  const absl::StatusOr<uint64_t> kept = proto::ParseBytes(words[at + 1]);
  if (!kept.ok()) return kept.status();
  int number = 0;
  if (!absl::SimpleAtoi(words[at + 2], &number) || *kept > *bytes)
    return absl::InvalidArgumentError("usage: see gpu_isolation.cc");
  if (attacks) return RunAttacker(words[2], words[3], *bytes, *kept, number);
  return RunVictim(words[2], *bytes, *kept, static_cast<uint64_t>(number));
}

}  // namespace
}  // namespace gmb::scenario

int main(int argc, char** argv) {
  signal(SIGPIPE, SIG_IGN);
  const absl::Status status =
      gmb::scenario::Run(std::vector<std::string>(argv, argv + argc));
  if (status.ok()) return 0;
  std::fprintf(stderr, "gpu_isolation: %s\n", status.ToString().c_str());
  return 1;
}
