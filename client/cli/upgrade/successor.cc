// The next broker, or the old one again: how they are started and ended.
#include "client/cli/upgrade/successor.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"

namespace gmb::cli {
namespace {

namespace fs = std::filesystem;

class ProcessSuccessor : public Successor {
 public:
  ProcessSuccessor(const StartedAs& as, Launch launch)
      : as_(as), new_(std::move(launch)) {}

  absl::Status Save() override { return absl::OkStatus(); }
  absl::Status StartNew() override { return Start(new_); }
  absl::Status StartOld() override {
    if (started_.has_value()) started_->Kill();
    started_.reset();
    return Start(as_.launch);
  }
  std::optional<std::string> AwaitEnd(absl::Duration wait) override {
    return started_.has_value() ? started_->AwaitEnd(wait) : std::nullopt;
  }
  [[nodiscard]] pid_t pid() const override {
    return started_.has_value() ? started_->pid() : 0;
  }
  void Forget() override {}

 private:
  absl::Status Start(const Launch& launch) {
    GMB_ASSIGN_OR_RETURN(started_, Launched::Start(launch));
    return absl::OkStatus();
  }

  const StartedAs& as_;
  const Launch new_;
  std::optional<Launched> started_;
};

// What is at the unit's path is what systemd starts.
class UnitSuccessor : public Successor {
 public:
  explicit UnitSuccessor(const StartedAs& as)
      : as_(as), saved_(absl::StrCat(as.launch.program, ".gmb-old")) {}

  absl::Status Save() override {
    if (!as_.replaced) return absl::OkStatus();
    std::error_code error;
    fs::copy_file(absl::StrCat("/proc/self/fd/", as_.executable.get()), saved_,
                  fs::copy_options::overwrite_existing, error);
    if (!error) return absl::OkStatus();
    return absl::ErrnoToStatus(
        error.value(), absl::StrCat("cannot keep the old program, ", saved_));
  }
  // Also where it has Restart=: then it is started at once.
  absl::Status StartNew() override { return Do({"start"}); }
  absl::Status StartOld() override {
    std::error_code error;
    if (as_.replaced) fs::rename(saved_, as_.launch.program, error);
    if (error) {
      return absl::ErrnoToStatus(
          error.value(), absl::StrCat("cannot put the old program back: mv ",
                                      saved_, " ", as_.launch.program));
    }
    Do({"kill", "--signal=KILL"}).IgnoreError();
    return Do({"start"});
  }
  std::optional<std::string> AwaitEnd(absl::Duration wait) override {
    absl::SleepFor(wait);
    return std::nullopt;
  }
  [[nodiscard]] pid_t pid() const override { return 0; }
  void Forget() override {
    std::error_code ignored;
    if (as_.replaced) fs::remove(saved_, ignored);
  }

 private:
  absl::Status Do(std::vector<std::string> words) {
    words.insert(words.end(), as_.unit.begin(), as_.unit.end());
    const absl::Status done = Systemctl(words).status();
    if (done.ok()) return done;
    return absl::Status(
        done.code(), absl::StrCat("systemctl ", words[0], " ", as_.unit.back(),
                                  ": ", done.message()));
  }

  const StartedAs& as_;
  const std::string saved_;
};

}  // namespace

std::unique_ptr<Successor> ByProcess(const StartedAs& as,
                                     const Launch& launch) {
  return std::make_unique<ProcessSuccessor>(as, launch);
}

std::unique_ptr<Successor> ByUnit(const StartedAs& as) {
  return std::make_unique<UnitSuccessor>(as);
}

}  // namespace gmb::cli
