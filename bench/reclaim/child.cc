#include "bench/reclaim/child.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/installed.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kChildPatience = absl::Minutes(2);
constexpr char kWell[] = "ok ";

}  // namespace

absl::StatusOr<Child> Child::Start(const std::vector<std::string>& arguments,
                                   const std::string& log_path) {
  absl::StatusOr<cli::ChannelPair> pair = cli::LineChannel::Pair();
  if (!pair.ok()) return pair.status();
  cli::ChildProcess::Options options;
  options.command = {cli::ThisProgram()};
  options.command.insert(options.command.end(), arguments.begin(),
                         arguments.end());
  options.stdin_fd = pair->theirs.fd();
  options.stdout_fd = pair->theirs.fd();
  options.log_path = log_path;
  absl::StatusOr<cli::ChildProcess> process = cli::ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  { const cli::LineChannel closed = std::move(pair->theirs); }
  Child child(*std::move(process), std::move(pair->ours));
  const absl::StatusOr<std::string> ready = child.ReadAnswer();
  if (!ready.ok()) return ready.status();
  return child;
}

absl::StatusOr<std::string> Child::ReadAnswer() {
  absl::StatusOr<std::string> line =
      lines_.Receive(absl::Now() + kChildPatience);
  if (!line.ok()) return line.status();
  absl::string_view answer = *line;
  if (absl::ConsumePrefix(&answer, kWell)) return std::string(answer);
  return absl::InternalError(absl::StrCat("a child process: ", answer));
}

absl::StatusOr<std::string> Child::Ask(const std::string& word) {
  if (absl::Status sent = lines_.Send(word); !sent.ok()) return sent;
  return ReadAnswer();
}

absl::StatusOr<double> Child::AskNumber(const std::string& word) {
  const absl::StatusOr<std::string> answer = Ask(word);
  if (!answer.ok()) return answer.status();
  double number = 0;
  if (absl::SimpleAtod(*answer, &number)) return number;
  return absl::InternalError(absl::StrCat("no number: ", *answer));
}

Orders::Orders() : lines_(dup(STDIN_FILENO)) {}

absl::Status Orders::Answer(const absl::StatusOr<std::string>& answer) {
  return lines_.Send(answer.ok() ? absl::StrCat(kWell, *answer)
                                 : answer.status().ToString());
}

absl::StatusOr<std::string> Orders::Next() {
  return lines_.Receive(absl::InfiniteFuture());
}

absl::StatusOr<std::string> Orders::Poll() {
  return lines_.Receive(absl::InfinitePast());
}

}  // namespace gmb::bench
