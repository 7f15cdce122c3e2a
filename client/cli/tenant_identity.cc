// How `gmb hold` and `gmb run` become a tenant.
#include "client/cli/tenant_identity.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/cli/no_answer.h"
#include "client/session/socket_dir.h"
#include "proto/error_status.h"

namespace gmb::cli {

namespace {

std::filesystem::path ResolvedDir(const std::string& socket_dir) {
  const std::filesystem::path dir = internal::ResolveSocketDir(socket_dir);
  return dir.has_filename() ? dir : dir.parent_path();  // "a/" is a
}

bool HasSocket(const std::filesystem::path& dir) {
  std::error_code error;
  return std::filesystem::is_socket(dir / "handle.sock", error);
}

// A broker makes these before any socket, and opens its tenants' sockets before its
// own. When it stops in order it takes the sockets along, and leaves these.
bool IsOfABroker(const std::filesystem::path& dir) {
  std::error_code error;
  return std::filesystem::is_directory(dir / "admin", error) &&
         std::filesystem::is_directory(dir / "tenants", error);
}

// The broker's own directory. `gmb run` leaves that of its tenant, DIR/tenants/NAME,
// in the environment; from there it is DIR, which need not be there, or mounted.
std::filesystem::path RootOf(const std::string& socket_dir) {
  const std::filesystem::path dir = ResolvedDir(socket_dir);
  const std::filesystem::path root = dir.parent_path().parent_path();
  if (dir.parent_path().filename() != "tenants" || IsOfABroker(dir)) return dir;
  return IsOfABroker(root) || internal::IsTenantDirectory(dir) ? root : dir;
}

// Where the tenant's directory is, or would be.
std::filesystem::path DirectoryOf(const std::string& socket_dir,
                                  const std::string& tenant) {
  return RootOf(socket_dir) / "tenants" / tenant;
}

}  // namespace

std::string SharedSocketDir(const std::string& socket_dir) {
  const std::filesystem::path root = RootOf(socket_dir);
  return IsOfABroker(root) || HasSocket(root) ? root.string() : socket_dir;
}

std::string TenantOfDirectory(const std::string& socket_dir) {
  const std::filesystem::path dir = ResolvedDir(socket_dir);
  return dir.parent_path().filename() == "tenants" && !IsOfABroker(dir)
             ? dir.filename().string()
             : "";
}

std::string TenantSocketDir(const std::string& socket_dir,
                            const std::string& tenant) {
  // A name with a slash is no tenant's, and must not lead elsewhere.
  if (tenant.empty() || tenant.find('/') != std::string::npos)
    return socket_dir;
  const std::filesystem::path own = DirectoryOf(socket_dir, tenant);
  // A user who may not enter it may still be the tenant on the shared socket,
  // by uid or token. Entering says nothing of a file, so look at both.
  std::error_code error;
  const bool usable = std::filesystem::is_directory(own, error) &&
                      eaccess(own.c_str(), X_OK) == 0;
  return usable ? own.string() : SharedSocketDir(socket_dir);
}

absl::StatusOr<std::unique_ptr<Client>> ConnectAsTenant(
    const std::string& socket_dir, const std::string& tenant,
    ClientOptions options) {
  // In a tenant's own directory a token has no say.
  options.socket_dir = options.tenant_token.empty()
                           ? TenantSocketDir(socket_dir, tenant)
                           : SharedSocketDir(socket_dir);
  const std::string tried = options.socket_dir;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  const bool is_it = client.ok() && (*client)->tenant() == tenant;
  if (!tenant.empty() && !is_it && tenant.find('/') == std::string::npos) {
    // A name that was misspelt has no directory.
    const absl::Status there =
        internal::CheckTenantIsThere(DirectoryOf(socket_dir, tenant));
    if (!there.ok())
      return proto::MakeError(v1::NO_SUCH_TENANT, there.message());
  }
  if (!client.ok()) {
    // A broker is started with its own directory; a user enters the one tried.
    return NoBroker(
        client.status(),
        internal::ResolveSocketDir(absl::IsPermissionDenied(client.status())
                                       ? tried
                                       : SharedSocketDir(socket_dir)));
  }
  if (!tenant.empty() && (*client)->tenant() != tenant) {
    return absl::FailedPreconditionError(
        absl::StrCat("this process is not that tenant: it has no socket "
                     "directory of its own that this user "
                     "may enter, and the shared socket tells tenants by uid or "
                     "token: wanted ",
                     tenant, ", the broker says ", (*client)->tenant()));
  }
  return client;
}

}  // namespace gmb::cli
