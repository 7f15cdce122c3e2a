#ifndef GMB_BENCH_RECLAIM_CHILD_H_
#define GMB_BENCH_RECLAIM_CHILD_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/line_channel.h"

namespace gmb::bench {

// This program again, in a process and a role of its own, that does what it is
// told line by line. Ends with the object.
class Child {
 public:
  // Returns when it has told that it is ready. It must be started from a thread
  // that stays.
  [[nodiscard]] static absl::StatusOr<Child> Start(
      const std::vector<std::string>& arguments, const std::string& log_path);

  // Its answer to a word; its error is the status.
  [[nodiscard]] absl::StatusOr<std::string> Ask(const std::string& word);
  // The same, for answers that are numbers.
  [[nodiscard]] absl::StatusOr<double> AskNumber(const std::string& word);

 private:
  Child(cli::ChildProcess process, cli::LineChannel lines)
      : process_(std::move(process)), lines_(std::move(lines)) {}
  absl::StatusOr<std::string> ReadAnswer();

  cli::ChildProcess process_;
  cli::LineChannel lines_;
};

// The child's side, on its standard input and output, which are one socket.
class Orders {
 public:
  Orders();
  // Ready, or why not, or an answer.
  absl::Status Answer(const absl::StatusOr<std::string>& answer);
  // Waits for the next word; UNAVAILABLE when there will be none.
  [[nodiscard]] absl::StatusOr<std::string> Next();
  // The next word if it is there, otherwise DEADLINE_EXCEEDED.
  [[nodiscard]] absl::StatusOr<std::string> Poll();

 private:
  cli::LineChannel lines_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_CHILD_H_
