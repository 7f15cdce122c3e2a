// A process that means ill, in the one way that it is told:
//
//   attacker NAME --socket-dir DIR [--seconds N] [--greet] ...
//
// It speaks to both sockets of a broker by itself, without gRPC, so that it is
// fast and keeps no rule that it does not want to keep. It ends with 0, and
// with 3 where this machine does not allow the attack.
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>

#include "absl/strings/numbers.h"
#include "tests/attack/attack.h"

namespace gmb::attack {
namespace {

constexpr int kUsage = 2;
constexpr int kImpossible = 3;

using AttackFunction = absl::Status (*)(Attack&);

const std::map<std::string, AttackFunction>& Attacks() {
  static const auto* const attacks = new std::map<std::string, AttackFunction>{
      {"borrowed_identity", BorrowedIdentity},
      {"cheap_frames", CheapFrames},
      {"continuation_flood", ContinuationFlood},
      {"control_burner", ControlBurner},
      {"data_pings", DataPings},
      {"empty_continuations", EmptyContinuations},
      {"endless_field", EndlessField},
      {"fast_connects", FastConnects},
      {"fuse_fds", FuseFds},
      {"guessing", Guessing},
      {"halting_crowd", HaltingCrowd},
      {"halting_crowd_in_moves", HaltingCrowdInMoves},
      {"halts", Halts},
      {"halts_in_moves", HaltsInMoves},
      {"hold_sessions", HoldSessions},
      {"hopeless_requests", HopelessRequests},
      {"inflight_cycles", InflightCycles},
      {"lent_sockets", LentSockets},
      {"linger_fd_grpc", LingerFdGrpc},
      {"linger_fd_handle", LingerFdHandle},
      {"link_ambush", LinkAmbush},
      {"link_races", LinkRaces},
      {"notices", Notices},
      {"odd_fds", OddFds},
      {"open_calls", OpenCalls},
      {"passed_on", PassedOn},
      {"ping_flood", PingFlood},
      {"punch_slabs", PunchSlabs},
      {"quota_questions", QuotaQuestions},
      {"rapid_reset", RapidReset},
      {"replays", Replays},
      {"settings_flood", SettingsFlood},
      {"single_bytes", SingleBytes},
      {"tamper_slabs", TamperSlabs},
      {"unknown_token_calls", UnknownTokenCalls},
      {"unread_answers", UnreadAnswers},
      {"unread_calls", UnreadCalls},
      {"unread_slabs", UnreadSlabs},
      {"waiting_requests", WaitingRequests},
  };
  return *attacks;
}

bool Set(const std::string& name, const std::string& value,
         AttackOptions* options) {
  const std::map<std::string, std::string*> texts = {
      {"--other-dir", &options->other_dir},
      {"--path", &options->path},
      {"--socket", &options->socket},
      {"--socket-dir", &options->socket_dir},
      {"--step", &options->step},
      {"--then", &options->then},
      {"--token", &options->token}};
  const std::map<std::string, int*> numbers = {
      {"--connections", &options->connections},
      {"--pid", &options->pid},
      {"--uid", &options->uid},
      {"--rate", &options->rate},
      {"--fds", &options->fds}};
  const std::map<std::string, double*> shares = {
      {"--seconds", &options->seconds}, {"--duty", &options->duty}};
  if (name == "--bytes") return absl::SimpleAtoi(value, &options->bytes);
  if (name == "--fill") return absl::SimpleAtoi(value, &options->fill);
  if (const auto text = texts.find(name); text != texts.end()) {
    *text->second = value;
    return true;
  }
  if (const auto number = numbers.find(name); number != numbers.end())
    return absl::SimpleAtoi(value, number->second) && *number->second >= 0;
  if (const auto share = shares.find(name); share != shares.end())
    return absl::SimpleAtod(value, share->second) && *share->second >= 0;
  return false;
}

bool Parse(int argc, char** argv, AttackOptions* options) {
  for (int i = 2; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--greet" || name == "--keep") {
      (name == "--greet" ? options->greet : options->keep) = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (!Set(name, value, options)) {
      std::fprintf(stderr, "attacker: not understood: %s %s\n", name.c_str(),
                   value.c_str());
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace gmb::attack

int main(int argc, char** argv) {
  using namespace gmb::attack;
  const auto named = argc > 1 ? Attacks().find(argv[1]) : Attacks().end();
  AttackOptions options;
  if (named == Attacks().end() || !Parse(argc, argv, &options)) {
    std::fprintf(stderr, "usage: attacker NAME --socket-dir DIR ...\n");
    for (const auto& [name, function] : Attacks())
      std::fprintf(stderr, "  %s\n", name.c_str());
    return kUsage;
  }
  if (options.uid > 0 && (::setgid(static_cast<gid_t>(options.uid)) != 0 ||
                          ::setuid(static_cast<uid_t>(options.uid)) != 0)) {
    std::perror("attacker: cannot be that user");
    return kImpossible;
  }
  Attack attack(options);
  const absl::Status made = named->second(attack);
  if (made.ok()) return 0;
  std::fprintf(stderr, "attacker: %s\n", made.ToString().c_str());
  return kImpossible;
}
