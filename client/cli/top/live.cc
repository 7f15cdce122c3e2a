// `gmb top`: the live screen.
#include "client/cli/top/live.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <utility>

#include "absl/time/clock.h"
#include "client/cli/interrupt.h"
#include "client/cli/top/controls.h"
#include "client/cli/top/keys.h"
#include "client/cli/top/source.h"
#include "client/cli/top/terminal_screen.h"

namespace gmb::cli::top {
namespace {

// The clock, and how long there was no answer, go on in between.
constexpr int kTickMilliseconds = 1000;

bool IsReadable(const pollfd& fd) {
  return fd.fd >= 0 && (fd.revents & (POLLIN | POLLHUP | POLLERR)) != 0;
}

class Live {
 public:
  Live(Context& context, Scene scene)
      : context_(context),
        scene_(std::move(scene)),
        wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        screen_(std::make_unique<TerminalScreen>(STDIN_FILENO, STDOUT_FILENO)),
        source_(std::make_unique<Source>(context.socket_dir, scene_.delay,
                                         [this] { Wake(); })) {}

  absl::Status Run() {
    while (Draw() && AwaitInput()) {
    }
    screen_.reset();
    // One that waits for a broker that hangs is left to the process's end: the
    // person has asked for the prompt.
    if (!source_->Stop(absl::Milliseconds(500)))
      std::_Exit(static_cast<int>(ExitCode::kOk));
    source_.reset();
    close(wake_fd_);
    return ended_;
  }

 private:
  void Wake() const {
    const uint64_t one = 1;
    (void)!write(wake_fd_, &one, sizeof(one));
  }

  bool Draw() {
    const Sight sight = source_->sight();
    // No broker may be there yet, but this user will be no operator later.
    if (sight.look == nullptr && !sight.trouble.ok() &&
        !absl::IsUnavailable(sight.trouble) &&
        !absl::IsDeadlineExceeded(sight.trouble)) {
      ended_ = sight.trouble;
      return false;
    }
    // Later it may be that the broker was started anew, without it.
    if (sight.look != nullptr && !std::exchange(seen_, true))
      ended_ = CheckIsThere(*sight.look, scene_.choice.device);
    if (!ended_.ok()) return false;
    Terminal terminal = Terminal::Of(STDOUT_FILENO);
    terminal.colour = context_.terminal.colour;
    scene_.now = absl::Now();
    return screen_->Draw(DrawScreen(sight, scene_, terminal, &extent_));
  }

  // False: it is over.
  bool AwaitInput() {
    std::array<pollfd, 4> fds = {
        {{.fd = screen_->key_fd(), .events = POLLIN, .revents = 0},
         {.fd = screen_->signal_fd(), .events = POLLIN, .revents = 0},
         {.fd = interrupt_.fd(), .events = POLLIN, .revents = 0},
         {.fd = wake_fd_, .events = POLLIN, .revents = 0}}};
    (void)poll(fds.data(), fds.size(), kTickMilliseconds);
    if (IsReadable(fds[2])) return false;
    if (IsReadable(fds[3])) {
      uint64_t count = 0;
      (void)!read(wake_fd_, &count, sizeof(count));
    }
    if (IsReadable(fds[1])) screen_->TakeSignal();
    return !IsReadable(fds[0]) || TakeKeys();
  }

  bool TakeKeys() {
    std::array<char, 256> bytes{};
    const ssize_t got = read(screen_->key_fd(), bytes.data(), bytes.size());
    if (got <= 0) return got < 0 && errno == EINTR;  // else it was hung up
    for (const Key key : keys_.Read({bytes.data(), static_cast<size_t>(got)})) {
      const absl::Duration delay = scene_.delay;
      const Controls::Next next = controls_.Press(key, extent_);
      if (next == Controls::Next::kQuit) return false;
      if (next == Controls::Next::kLookNow) source_->LookNow();
      if (scene_.delay != delay) {
        source_->set_delay(scene_.delay);
        source_->LookNow();
      }
    }
    return true;
  }

  Context& context_;
  Scene scene_;
  Controls controls_{&scene_};
  Extent extent_;
  KeyReader keys_;
  absl::Status ended_;
  bool seen_ = false;  // the broker
  const int wake_fd_;
  // Both block signals, so before all threads: that of the second, too.
  std::unique_ptr<TerminalScreen> screen_;
  const Interrupt interrupt_;
  std::unique_ptr<Source> source_;
};

}  // namespace

absl::StatusOr<ExitCode> RunLive(Context& context, Scene scene) {
  const absl::Status ended = Live(context, std::move(scene)).Run();
  if (!ended.ok()) return ended;
  return ExitCode::kOk;
}

}  // namespace gmb::cli::top
