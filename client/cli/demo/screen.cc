// The demo: tells its story, on a live screen or line by line.
#include "client/cli/demo/screen.h"

#include <signal.h>
#include <unistd.h>

#include <condition_variable>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/text/text.h"

namespace gmb::cli {
namespace {

constexpr size_t kMostLines = 100;
constexpr char kHideCursor[] = "\x1b[?25l";
constexpr char kShowCursor[] = "\x1b[?25h";
constexpr char kClearToEndOfLine[] = "\x1b[K";
constexpr char kClearBelow[] = "\x1b[J";

}  // namespace

PlainScreen::PlainScreen(Context* context)
    : context_(context), start_(absl::Now()) {}

void PlainScreen::Print(Tone tone, const std::string& kind,
                        const std::string& text) {
  const double elapsed = absl::ToDoubleSeconds(absl::Now() - start_);
  const std::lock_guard<std::mutex> lock(mu_);
  if (context_->json) {
    context_->out << LineJson(Json{{"elapsed", elapsed}, {kind, text}})
                  << std::endl;
  } else {
    context_->out << absl::StrFormat("%7.3f s  ", elapsed)
                  << context_->terminal.Paint(tone, Printable(text))
                  << std::endl;
  }
  // Nobody reads any more (`gmb demo | head`): as an interrupt does, so that
  // nothing is left behind.
  if (!context_->out && !std::exchange(gave_up_, true))
    ::kill(::getpid(), SIGTERM);
}

void PlainScreen::BeginAct(const std::string& title) {
  Print(Tone::kStrong, "act", title);
}

void PlainScreen::Say(Tone tone, const std::string& text) {
  Print(tone, "say", context_->json ? text : absl::StrCat("  ", text));
}

LiveScreen::LiveScreen(Context* context, int terminal_fd)
    : context_(context), terminal_fd_(terminal_fd), start_(absl::Now()) {
  context_->out << kHideCursor << std::flush;
}

LiveScreen::~LiveScreen() { End(); }

void LiveScreen::BeginAct(const std::string& title) {
  const std::lock_guard<std::mutex> lock(mu_);
  picture_.act = title;
  picture_.lines.clear();
  Draw();
}

void LiveScreen::Say(Tone tone, const std::string& text) {
  const std::lock_guard<std::mutex> lock(mu_);
  picture_.lines.emplace_back(tone, text);
  if (picture_.lines.size() > kMostLines) picture_.lines.pop_front();
  Draw();
}

void LiveScreen::Note(const std::string& tenant, const std::string& note) {
  const std::lock_guard<std::mutex> lock(mu_);
  picture_.notes[tenant] = note;
}

void LiveScreen::Show(const Snapshot& snapshot) {
  const std::lock_guard<std::mutex> lock(mu_);
  picture_.snapshot = snapshot;
  picture_.has_snapshot = true;
  Draw();
}

void LiveScreen::Draw() {
  if (ended_) return;
  Terminal terminal = Terminal::Of(terminal_fd_);
  terminal.colour = context_->terminal.colour;
  picture_.elapsed = absl::Now() - start_;
  const std::vector<std::string> frame = DrawFrame(picture_, terminal);
  // In one piece, so that no half picture is seen.
  std::string text =
      drawn_lines_ > 0 ? absl::StrCat("\x1b[", drawn_lines_, "F") : "";
  for (const std::string& line : frame)
    absl::StrAppend(&text, line, kClearToEndOfLine, "\n");
  text += kClearBelow;
  context_->out << text << std::flush;
  drawn_lines_ = frame.size();
}

void LiveScreen::LetPeopleLook(absl::Duration time,
                               const std::stop_token& stop) {
  std::mutex mu;
  std::condition_variable_any wake;
  std::unique_lock<std::mutex> lock(mu);
  wake.wait_for(lock, stop, absl::ToChronoMilliseconds(time),
                [] { return false; });
}

void LiveScreen::End() {
  const std::lock_guard<std::mutex> lock(mu_);
  if (ended_) return;
  ended_ = true;
  context_->out << kShowCursor << std::flush;
}

}  // namespace gmb::cli
