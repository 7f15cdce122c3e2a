// The configuration file changes by itself: somebody has put another there.
#include "broker/daemon/file_watch.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

constexpr uint32_t kEvents = IN_CLOSE_WRITE | IN_MOVED_TO | IN_CREATE;

std::string FolderOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

// Behind symbolic links.
FileMark MarkOf(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {.inode = absl::StrCat(info.st_dev, ":", info.st_ino),
          .contents = absl::StrCat(info.st_size, ":", info.st_mtim.tv_sec, ".",
                                   info.st_mtim.tv_nsec)};
}

bool IsLink(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0 && S_ISLNK(info.st_mode);
}

}  // namespace

absl::StatusOr<std::unique_ptr<FileWatch>> FileWatch::Start(
    const std::set<std::string>& files, std::function<void()> changed) {
  base::UniqueFd inotify(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (!inotify.valid())
    return absl::ErrnoToStatus(errno, "cannot watch files (inotify)");
  base::UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.valid())
    return absl::ErrnoToStatus(errno, "cannot watch files (eventfd)");
  std::unique_ptr<FileWatch> watch(
      new FileWatch(std::move(inotify), std::move(stop), std::move(changed)));
  GMB_RETURN_IF_ERROR(watch->Watch(files).status());
  watch->thread_ = std::thread([w = watch.get()] { w->Run(); });
  return watch;
}

FileWatch::FileWatch(base::UniqueFd inotify, base::UniqueFd stop,
                     std::function<void()> changed)
    : inotify_(std::move(inotify)),
      stop_(std::move(stop)),
      changed_(std::move(changed)) {}

FileWatch::~FileWatch() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  while (::write(stop_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
  thread_.join();
}

absl::StatusOr<bool> FileWatch::Watch(const std::set<std::string>& files) {
  base::MutexLock lock(&mu_);
  bool any_new = false;
  absl::Status watched;
  std::map<std::string, int> folders;
  std::map<std::string, FileMark> marks;
  for (const std::string& file : files) {
    const std::string folder = FolderOf(file);
    // One that is watched already keeps its number.
    const int number =
        ::inotify_add_watch(inotify_.get(), folder.c_str(), kEvents);
    if (number < 0) {
      watched.Update(absl::ErrnoToStatus(
          errno, absl::StrCat("cannot watch the folder ", folder)));
    } else {
      folders[folder] = number;
    }
    const auto known = marks_.find(file);
    any_new |= known == marks_.end();
    marks[file] = known == marks_.end() ? MarkOf(file) : known->second;
  }
  for (const auto& [folder, number] : folders_) {
    if (!folders.contains(folder)) ::inotify_rm_watch(inotify_.get(), number);
  }
  folders_ = std::move(folders);
  marks_ = std::move(marks);
  if (!watched.ok()) return watched;
  return any_new;
}

bool FileWatch::ReadEvents() {
  bool any = false;
  alignas(inotify_event) std::array<char, 4096> events{};
  for (;;) {
    const ssize_t n = ::read(inotify_.get(), events.data(), events.size());
    if (n <= 0) return any;
    // The kernel gives whole events.
    for (size_t at = 0; at < static_cast<size_t>(n);) {
      const auto* const event =
          reinterpret_cast<const inotify_event*>(&events[at]);
      any |= IsWorthALook(*event);
      if ((event->mask & IN_CLOSE_WRITE) != 0)
        closed_.insert(MarkOf(PathOf(*event)).inode);
      at += sizeof(inotify_event) + event->len;
    }
  }
}

// A file that was made is still to be written; a link is whole.
bool FileWatch::IsWorthALook(const inotify_event& event) const {
  if ((event.mask & IN_CREATE) == 0) return true;
  const std::string path = PathOf(event);
  return path.empty() || IsLink(path);
}

std::string FileWatch::PathOf(const inotify_event& event) const {
  for (const auto& [folder, number] : folders_) {
    if (number == event.wd && event.len > 0)
      return absl::StrCat(folder, "/", event.name);
  }
  return "";
}

// The same inode with other contents is being written until it is closed.
bool FileWatch::LookAtFiles() {
  bool any = false;
  for (auto& [file, mark] : marks_) {
    FileMark now = MarkOf(file);
    if (now.inode.empty() || now == mark) continue;
    if (now.inode == mark.inode && !closed_.contains(now.inode)) continue;
    mark = std::move(now);
    any = true;
  }
  closed_.clear();
  return any;
}

void FileWatch::Run() {
  for (;;) {
    std::array<pollfd, 2> ready{
        {{.fd = inotify_.get(), .events = POLLIN, .revents = 0},
         {.fd = stop_.get(), .events = POLLIN, .revents = 0}}};
    if (::poll(ready.data(), ready.size(), -1) < 0) continue;
    if (ready[1].revents != 0) return;
    bool any = false;
    {
      base::MutexLock lock(&mu_);
      any = ReadEvents() && LookAtFiles();
    }
    if (any) changed_();
  }
}

}  // namespace gmb::broker
