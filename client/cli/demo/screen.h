#ifndef GMB_CLIENT_CLI_DEMO_SCREEN_H_
#define GMB_CLIENT_CLI_DEMO_SCREEN_H_

#include <memory>
#include <mutex>
#include <ostream>
#include <stop_token>
#include <string>

#include "absl/time/time.h"
#include "client/cli/context.h"
#include "client/cli/demo/frame.h"

namespace gmb::cli {

// Where the demo's story is told. Thread-safe.
class Screen {
 public:
  virtual ~Screen() = default;

  virtual void BeginAct(const std::string& title) = 0;
  virtual void Say(Tone tone, const std::string& text) = 0;
  // A word behind a tenant's bar, such as its process; for the live screen.
  virtual void Note(const std::string& tenant, const std::string& note) = 0;
  virtual void Show(const Snapshot& snapshot) = 0;
  // Gives people time to look. Returns at once where nobody watches, or when
  // a stop is asked for.
  virtual void LetPeopleLook(absl::Duration time,
                             const std::stop_token& stop) = 0;
  // The story is over; what was drawn stays.
  virtual void End() = 0;
};

// One line an event: for files, pipes, --plain, and JSON (an object a line).
class PlainScreen final : public Screen {
 public:
  explicit PlainScreen(Context* context);

  void BeginAct(const std::string& title) override;
  void Say(Tone tone, const std::string& text) override;
  void Note(const std::string&, const std::string&) override {}
  void Show(const Snapshot&) override {}
  void LetPeopleLook(absl::Duration, const std::stop_token&) override {}
  void End() override {}

 private:
  void Print(Tone tone, const std::string& kind, const std::string& text);

  std::mutex mu_;
  bool gave_up_ = false;
  Context* const context_;
  const absl::Time start_;
};

// A picture that is drawn over itself on a terminal. Restores the cursor in
// the destructor at the latest.
class LiveScreen final : public Screen {
 public:
  // `terminal_fd` is asked for its size at every picture.
  LiveScreen(Context* context, int terminal_fd);
  ~LiveScreen() override;

  void BeginAct(const std::string& title) override;
  void Say(Tone tone, const std::string& text) override;
  void Note(const std::string& tenant, const std::string& note) override;
  void Show(const Snapshot& snapshot) override;
  void LetPeopleLook(absl::Duration time, const std::stop_token& stop) override;
  void End() override;

 private:
  void Draw();  // with mu_ held

  std::mutex mu_;
  Context* const context_;
  const int terminal_fd_;
  const absl::Time start_;
  Picture picture_;
  size_t drawn_lines_ = 0;
  bool ended_ = false;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_SCREEN_H_
