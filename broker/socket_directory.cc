// The broker's start: the directories whose access says who a client is.
#include "broker/socket_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "broker/make_directories.h"
#include "ipc/socket_path.h"

namespace gmb::broker {
namespace {

constexpr char kGrpcSocket[] = "gmb.sock";
constexpr char kHandleSocket[] = "handle.sock";
constexpr int kOpenDirectory = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

absl::Status SetAccess(int fd, const std::string& path,
                       const SocketAccess& access) {
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot look at ", path));
  const uid_t owner = access.owner.value_or(::geteuid());
  if (info.st_uid != ::geteuid() && info.st_uid != 0 && info.st_uid != owner) {
    return absl::FailedPreconditionError(
        absl::StrCat("a socket directory belongs to a stranger: remove it, or "
                     "give it to the broker's user: ",
                     path, " belongs to uid ", info.st_uid));
  }
  const bool other_owner = info.st_uid != owner;
  const gid_t group = access.group.value_or(::getegid());
  const mode_t was = info.st_mode & 07777;
  mode_t mode = was;
  if (other_owner || info.st_gid != group) {
    // The new owner and group do not get what the old ones might.
    if (const mode_t narrow = was & access.mode;
        narrow != was && ::fchmod(fd, narrow) == 0)
      mode = narrow;
    if (::fchown(fd, owner, group) != 0) {
      const int error = errno;
      if (mode != was) (void)::fchmod(fd, was);
      return absl::ErrnoToStatus(
          error,
          absl::StrCat("cannot give a socket directory to its owner and group: "
                       "run the broker as root or as a member of the group, or "
                       "change the configuration: ",
                       path));
    }
  }
  // After the owner: a change of owner can clear bits of the mode.
  if (mode != access.mode && ::fchmod(fd, access.mode) != 0) {
    return absl::ErrnoToStatus(errno,
                               absl::StrCat("cannot set the mode of ", path));
  }
  return absl::OkStatus();
}

// Makes `name` below `parent`, or takes the one that is there.
absl::StatusOr<base::UniqueFd> OpenDirectory(int parent,
                                             const std::string& name,
                                             const std::string& path,
                                             const SocketAccess& access) {
  // Closed to others until its owner and mode are right.
  if (::mkdirat(parent, name.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot make the directory ", path));
  }
  base::UniqueFd fd(::openat(parent, name.c_str(), kOpenDirectory));
  if (!fd.valid()) {
    return absl::ErrnoToStatus(
        errno,
        absl::StrCat(
            "cannot open the directory (symbolic links are not followed) ",
            path));
  }
  const absl::Status set = SetAccess(fd.get(), path, access);
  if (!set.ok()) return set;
  return fd;
}

}  // namespace

std::string SocketDirectory::TenantGrpcSocket(absl::string_view name) const {
  return absl::StrCat(path_, "/tenants/", name, "/", kGrpcSocket);
}

std::string SocketDirectory::TenantHandleSocket(absl::string_view name) const {
  return absl::StrCat(path_, "/tenants/", name, "/", kHandleSocket);
}

absl::StatusOr<SocketDirectory> SocketDirectory::Open(
    const std::string& path, std::optional<gid_t> admin_group) {
  absl::Status made =
      ipc::CheckSocketPath(absl::StrCat(path, "/admin/", kHandleSocket));
  if (!made.ok()) return made;
  made = MakeDirectories(path, 0755);
  if (!made.ok()) return made;
  base::UniqueFd root(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid())
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the directory ", path));

  auto lock = InstanceLock::Acquire(path);
  if (!lock.ok()) return lock.status();

  const mode_t admin_mode = admin_group.has_value() ? 0750 : 0700;
  auto admin = OpenDirectory(root.get(), "admin", path + "/admin",
                             {.group = admin_group, .mode = admin_mode});
  if (!admin.ok()) return admin.status();
  auto tenants =
      OpenDirectory(root.get(), "tenants", path + "/tenants", {.mode = 0711});
  if (!tenants.ok()) return tenants.status();
  return SocketDirectory(path, *std::move(lock), *std::move(tenants));
}

absl::Status SocketDirectory::AddTenant(absl::string_view name,
                                        const SocketAccess& access) {
  if (name.empty() || name.front() == '.' || absl::StrContains(name, '/')) {
    return absl::InvalidArgumentError(
        "a tenant's name must be a plain file name");
  }
  const absl::Status fits = ipc::CheckSocketPath(TenantHandleSocket(name));
  if (!fits.ok()) return fits;
  auto directory =
      OpenDirectory(tenants_.get(), std::string(name),
                    absl::StrCat(path_, "/tenants/", name), access);
  if (!directory.ok()) return directory.status();
  return absl::OkStatus();
}

absl::Status SocketDirectory::RemoveTenant(absl::string_view name) {
  const std::string entry(name);
  const base::UniqueFd directory(
      ::openat(tenants_.get(), entry.c_str(), kOpenDirectory));
  if (!directory.valid()) {
    if (errno == ENOENT) return absl::OkStatus();
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot open the directory of tenant ", name));
  }
  for (const char* socket : {kGrpcSocket, kHandleSocket})
    ::unlinkat(directory.get(), socket, 0);
  if (::unlinkat(tenants_.get(), entry.c_str(), AT_REMOVEDIR) != 0) {
    if (errno == ENOTEMPTY || errno == EEXIST || errno == EBUSY) {
      return absl::FailedPreconditionError(
          absl::StrCat("the tenant's socket directory is in use or has files "
                       "that are not the broker's: remove it by hand: ",
                       path_, "/tenants/", name));
    }
    return absl::ErrnoToStatus(
        errno, absl::StrCat("cannot remove the directory of tenant ", name));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
