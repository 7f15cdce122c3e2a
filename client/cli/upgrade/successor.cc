// The next broker, or the old one again: how they are started and ended.
#include "client/cli/upgrade/successor.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"

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

// Systemd starts the program at the unit's path.
class UnitSuccessor : public Successor {
 public:
  explicit UnitSuccessor(const StartedAs& as)
      : as_(as), saved_(absl::StrCat(as.launch.program, ".gmb-old")) {}

  absl::Status Save() override {
    if (!as_.replaced) return absl::OkStatus();
    GMB_RETURN_IF_ERROR(CheckRootsAlone());
    const absl::Status kept = Copy();
    if (kept.ok()) return kept;
    return absl::Status(
        kept.code(), absl::StrCat("cannot keep the old program, ", saved_, ": ",
                                  kept.message()));
  }
  // Also where it has Restart=: then it is started at once.
  absl::Status StartNew() override { return Do({"start", "--no-block"}); }
  absl::Status StartOld() override {
    std::error_code error;
    if (as_.replaced) fs::rename(saved_, as_.launch.program, error);
    if (error) {
      return absl::ErrnoToStatus(
          error.value(), absl::StrCat("cannot put the old program back: mv ",
                                      saved_, " ", as_.launch.program));
    }
    Do({"kill", "--signal=KILL"}).IgnoreError();
    return Do({"start", "--no-block"});
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
  // Root puts it where systemd runs it: so nobody else may have had a hand in it.
  [[nodiscard]] absl::Status CheckRootsAlone() const {
    struct stat program {};
    struct stat folder {};
    const std::string parent =
        fs::path(as_.launch.program).parent_path().string();
    const auto is_roots = [](const struct stat& info) {
      return info.st_uid == ::geteuid() && (info.st_mode & 022) == 0;
    };
    if (::fstat(as_.executable.get(), &program) == 0 &&
        ::stat(parent.c_str(), &folder) == 0 && is_roots(program) &&
        is_roots(folder)) {
      return absl::OkStatus();
    }
    return absl::FailedPreconditionError(
        absl::StrCat("the old program or its folder is not this user's alone: ",
                     as_.launch.program, ": it could not be put back safely"));
  }
  // Into a new file, and never through a link.
  [[nodiscard]] absl::Status Copy() const {
    (void)::unlink(saved_.c_str());
    const base::UniqueFd to(
        ::open(saved_.c_str(),
               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0700));
    if (!to.valid()) return absl::ErrnoToStatus(errno, "open");
    off_t at = 0;
    ssize_t sent = 0;
    do {
      sent = ::sendfile(to.get(), as_.executable.get(), &at, 1 << 20);
    } while (sent > 0 || (sent < 0 && errno == EINTR));
    if (sent < 0) return absl::ErrnoToStatus(errno, "copy");
    if (::fchmod(to.get(), 0755) != 0)
      return absl::ErrnoToStatus(errno, "mode");
    return absl::OkStatus();
  }
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
