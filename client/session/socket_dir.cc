// Finds the broker's sockets.
#include "client/session/socket_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "ipc/seqpacket.h"
#include "ipc/socket_path.h"

namespace gmb::internal {
namespace {

// A gRPC target is a URI: what is not plain in a path is escaped.
std::string PercentEncode(const std::string& path) {
  std::string encoded;
  for (const char c : path) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' ||
        c == '-' || c == '_' || c == '.') {
      encoded.push_back(c);
    } else {
      absl::StrAppendFormat(&encoded, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

absl::StatusOr<SocketDir> SocketDir::Open(std::string dir) {
  if (dir.empty()) {
    const char* const from_environment = std::getenv("GMB_SOCKET_DIR");
    const bool set = from_environment != nullptr && *from_environment != '\0';
    dir = set ? from_environment : "/run/gmb";
  }
  SocketDir result;
  // Absolute, so that a later chdir() does not break a reconnect. The C library
  // allocates nothing for that: a program's allocator may not be ours.
  std::array<char, PATH_MAX> here{};
  if (dir.starts_with('/')) {
    result.name_ = dir;
  } else if (getcwd(here.data(), here.size()) != nullptr) {
    result.name_ = (std::filesystem::path(here.data()) / dir).string();
  } else {
    return absl::UnavailableError(
        absl::StrCat("gmb: no such socket directory: ", dir));
  }
  result.base_ = result.name_;
  if (result.handle_path().size() <= ipc::kMaxSocketPathBytes) return result;

  result.dir_ = base::UniqueFd(
      open(result.name_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!result.dir_.valid()) {
    return absl::UnavailableError(absl::StrCat(
        "gmb: cannot open the socket directory (is the broker running?): ",
        result.name_, ": ", std::generic_category().message(errno)));
  }
  result.base_ = absl::StrCat("/proc/self/fd/", result.dir_.get());
  return result;
}

std::string SocketDir::grpc_target() const {
  return absl::StrCat("unix:", PercentEncode(base_), "/gmb.sock");
}

std::string ResolveSocketDir(const std::string& socket_dir) {
  // Opening does not need the directory to exist when its path is short.
  const absl::StatusOr<SocketDir> dir = SocketDir::Open(socket_dir);
  return dir.ok() ? dir->name() : socket_dir;
}

bool IsTenantDirectory(const std::string& socket_dir) {
  const std::filesystem::path dir = socket_dir;
  std::error_code error;
  return std::filesystem::is_socket(dir / "handle.sock", error) &&
         !std::filesystem::exists(dir / "admin", error) &&
         !std::filesystem::exists(dir / "tenants", error);
}

absl::Status CheckTenantIsThere(const std::string& socket_dir) {
  std::filesystem::path dir = socket_dir;
  if (!dir.has_filename()) dir = dir.parent_path();  // "a/" is a
  const std::filesystem::path root = dir.parent_path().parent_path();
  if (dir.parent_path().filename() != "tenants") return absl::OkStatus();
  std::error_code error;
  // In a directory that was mounted alone nobody sees who else there is.
  const bool missing = std::filesystem::status(dir, error).type() ==
                           std::filesystem::file_type::not_found &&
                       std::filesystem::is_directory(root / "tenants", error);
  if (!missing) return absl::OkStatus();
  // One that has just been killed may come back with the tenant.
  const absl::Status answers =
      ipc::SeqpacketSocket::Connect(root / "handle.sock", absl::ZeroDuration())
          .status();
  if (!answers.ok() && !absl::IsDeadlineExceeded(answers))
    return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(
      "gmb: the broker has no tenant ", dir.filename().string(),
      ": correct the name, or have the operator make it: ", dir.string(),
      " is not there"));
}

}  // namespace gmb::internal
