// Measures how much an attack on a broker costs its other clients, beside
// processes that take the same processor time and leave the broker alone.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "bench/attack/attack_round.h"
#include "bench/attack/figures.h"
#include "bench/attack/programs.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/temp_dir.h"
#include "tests/attack/event_listener.h"
#include "tests/attack/halt_steps.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kUntilCalm = absl::Seconds(2);
constexpr char kPunchedBytes[] = "67108864";
constexpr char kTenants[] =
    "tenants:\n"
    "  - {name: mallory, limit: 100%}\n"
    "  - {name: honest, limit: 100%}\n"
    "  - {name: other, limit: 100%}\n";

constexpr char kUsage[] =
    R"(usage: attack_bench [--gmbd PATH] [--attacker PATH] [--rounds 3] [--seconds 3]
                    [--json] [ATTACK...]

Each round attacks a broker of the host device for some seconds, and then burns
the same processor time beside it in as many processes (the control), which fill
as much memory at once as the attacker fills of its leases. Where the attack
needs an operator who deletes and makes its tenant, or takes its memory, one does
so every 100 ms in both. Meanwhile
an honest session acquires and releases 2 MiB without pause, and every 200 ms a
new client greets and an operator asks for the status. ATTACK is a name such as
rapid_reset, and means all of its forms; without any, all attacks are made.

Columns: "p50" and "p99" are an acquire's, in ms, the medians of the rounds;
"ratio" is p99 under attack to p99 under control, the median of the rounds and
the worst; "greet" and "status" are the longest of all rounds, in ms, and after
the stroke under control; "peak" and "left" say by how much RssAnon had grown,
in MiB, during the attack and 2 s after it; "fds" and "threads" by how many, 2 s
after; "ended" counts sessions of others that the broker ended; "failed" counts
requests of others. "cores" is what each attacker took, and "gmbd" what
the broker took, under attack and under control.
)";

struct Options {
  Programs programs;
  int rounds = 3;
  double seconds = 3;
  bool json = false;
  std::vector<std::string> names;
};

// A link is met when sockets are made, and holes and halts in a move when
// memory is taken.
void AddAttacksWithAnOperator(std::vector<AttackSpec>* attacks) {
  attacks->push_back(
      {.words = {"link_races", "--path", kVictim}, .work = Work::kMakesAnew});
  attacks->push_back({.words = {"punch_slabs", "--bytes", kPunchedBytes},
                      .work = Work::kReclaims});
  for (const char* then : {"stop", "kill"}) {
    attacks->push_back({.words = {"halting_crowd", "--then", then},
                        .processes = gmb::attack::kStepsOfALife.size()});
    attacks->push_back({.words = {"halting_crowd_in_moves", "--then", then},
                        .processes = gmb::attack::kStepsOfMoves.size(),
                        .work = Work::kReclaims});
  }
}

std::vector<AttackSpec> AllAttacks() {
  std::vector<AttackSpec> attacks = {
      {{"linger_fd_handle", "--connections", "1"}},
      {{"linger_fd_handle", "--connections", "64", "--fds", "16"}},
      {{"linger_fd_grpc", "--connections", "24"}},
      {{"linger_fd_grpc", "--connections", "24", "--greet"}},
  };
  // Each with a session for each of its connections.
  for (const char* name : {"open_calls", "unread_answers", "quota_questions",
                           "notices", "hopeless_requests"})
    attacks.push_back({{name, "--connections", "60"}});
  attacks.push_back({{"data_pings", "--greet"}});
  attacks.push_back({{"replays"}, false, uint64_t{2} << 20});
  // Clients that lie, hold on, or are slow.
  for (const char* name : {"passed_on", "odd_fds", "inflight_cycles",
                           "tamper_slabs", "unread_slabs", "fuse_fds"})
    attacks.push_back({{name}});
  attacks.push_back({{"tamper_slabs", "--keep"}});
  attacks.push_back(
      {.words = {"unread_calls", "--greet"}, .by_operators = true});
  attacks.push_back({{"guessing", "--greet"}});
  attacks.push_back({{"borrowed_identity", "--pid", kThisProcess}});
  attacks.push_back({{"lent_sockets", "--other-dir", kDirOfAnother}});
  attacks.push_back({{"hold_sessions", "--connections", "64"}});
  attacks.push_back({{"waiting_requests", "--connections", "60"}});
  for (const char* socket : {"handle.sock", "gmb.sock"})
    attacks.push_back(
        {{"single_bytes", "--connections", "64", "--socket", socket}});
  attacks.push_back({{"single_bytes", "--socket", "gmb.sock", "--greet"}});
  for (const char* name :
       {"continuation_flood", "endless_field", "empty_continuations",
        "cheap_frames", "unknown_token_calls", "rapid_reset", "ping_flood",
        "settings_flood"}) {
    attacks.push_back({{name}});
    attacks.push_back({{name, "--greet"}});
  }
  for (const char* socket : {"handle.sock", "gmb.sock"}) {
    const std::vector<std::string> words = {"fast_connects", "--rate", "10000",
                                            "--socket", socket};
    attacks.push_back({words, true});
    attacks.push_back({words, true});
    attacks.back().words.push_back("--keep");
  }
  AddAttacksWithAnOperator(&attacks);
  return attacks;
}

absl::StatusOr<Figures> Measure(const Options& options,
                                const AttackSpec& attack,
                                const std::string& dir) {
  std::filesystem::create_directory(dir);
  cli::BrokerProcess::Options gmbd;
  gmbd.program = options.programs.gmbd;
  gmbd.device_flags = {"--device", "host:256MiB"};
  if (attack.work == Work::kReclaims)
    gmbd.device_flags.push_back("--host-pool=256MiB");
  gmbd.config = kTenants;
  gmbd.dir = dir;
  auto broker = cli::BrokerProcess::Start(gmbd);
  if (!broker.ok()) return broker.status();
  const RoundSetup setup{.attacker = options.programs.attacker,
                         .socket_dir = (*broker)->socket_dir(),
                         .log_path = dir + "/attacker.log",
                         .broker = (*broker)->pid(),
                         .duration = absl::Seconds(options.seconds)};
  const gmb::attack::EventListener events(setup.socket_dir);
  // The pools of gRPC grow with the first load, of whatever kind.
  if (const absl::Status served = ServeCrowds(setup.socket_dir, setup.broker);
      !served.ok())
    return served;
  RoundSetup warm_up = setup;
  warm_up.duration = absl::Seconds(1);
  if (auto calm = RunControl(warm_up, attack, 0); !calm.ok())
    return calm.status();
  Figures figures;
  for (int i = 0; i < options.rounds; ++i) {
    absl::SleepFor(absl::Milliseconds(300));  // the last client has gone
    const Held before = HeldBy(setup.broker);
    const absl::StatusOr<Round> attacked = RunAttack(setup, attack);
    if (!attacked.ok()) return attacked.status();
    absl::SleepFor(kUntilCalm);
    const Held after = HeldBy(setup.broker);
    const absl::StatusOr<Round> control =
        RunControl(setup, attack, attacked->cores);
    if (!control.ok()) return control.status();
    AddRound(*attacked, *control, before, after, &figures);
  }
  if (!(*broker)->running()) return absl::UnavailableError("gmbd has ended");
  for (const std::string& session : events.EndedByOthers(kMallory)) {
    ++figures.ended;
    figures.failures.push_back(absl::StrCat("ended: ", session));
  }
  return figures;
}

std::string NameOf(const AttackSpec& attack) {
  std::string name = absl::StrJoin(attack.words, " ");
  return attack.shared_too ? absl::StrCat("2 x ", name) : name;
}

void Print(const std::string& name, const Cells& cells, bool json) {
  if (json) {
    std::string line = absl::StrCat("{\"attack\": \"", name, "\"");
    for (const auto& [heading, value] : cells)
      absl::StrAppend(&line, ", \"", heading, "\": \"", value, "\"");
    std::printf("%s}\n", line.c_str());
    return;
  }
  std::printf("%-58s", name.c_str());
  for (const auto& cell : cells)
    std::printf(" %*s",
                static_cast<int>(std::max(cell.first.size(), size_t{7})) + 2,
                cell.second.c_str());
  std::printf("\n");
}

bool Wanted(const Options& options, const AttackSpec& attack) {
  return options.names.empty() ||
         std::find(options.names.begin(), options.names.end(),
                   attack.words.front()) != options.names.end();
}

absl::Status Run(const Options& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  Cells headings;
  for (const auto& [heading, value] : Row(Figures()))
    headings.emplace_back(heading, heading);
  if (!options.json) Print("", headings, false);
  std::string notes;
  int number = 0;
  int not_measured = 0;
  for (const AttackSpec& attack : AllAttacks()) {
    if (!Wanted(options, attack)) continue;
    const std::string name = NameOf(attack);
    const absl::StatusOr<Figures> figures =
        Measure(options, attack, absl::StrCat(dir->path(), "/", ++number));
    if (!figures.ok()) {
      std::fprintf(stderr, "%s: %s\n", name.c_str(),
                   figures.status().ToString().c_str());
      ++not_measured;
      continue;
    }
    Print(name, Row(*figures), options.json);
    std::fflush(stdout);
    absl::StrAppend(&notes, "  ", name, ": ", figures->told, "\n");
    for (const std::string& failure : figures->failures)
      absl::StrAppend(&notes, "    ", failure, "\n");
  }
  if (number == 0)
    return absl::NotFoundError(
        "no such attack; --help says how they are named");
  if (!options.json) {
    std::printf("\nThe attackers' own counts of the last round:\n%s",
                notes.c_str());
  }
  if (not_measured == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      not_measured, " attacks were not measured, for the reasons above"));
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--json") {
      options->json = true;
      continue;
    }
    if (arg.rfind("--", 0) != 0) {
      options->names.push_back(arg);
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (arg == "--gmbd") {
      options->programs.gmbd = value;
    } else if (arg == "--attacker") {
      options->programs.attacker = value;
    } else if (arg == "--rounds") {
      if (!absl::SimpleAtoi(value, &options->rounds) || options->rounds < 1)
        return false;
    } else if (arg != "--seconds" ||
               !absl::SimpleAtod(value, &options->seconds) ||
               options->seconds <= 0) {
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
  std::fprintf(stderr, "attack_bench: %s\n", status.ToString().c_str());
  return 1;
}
