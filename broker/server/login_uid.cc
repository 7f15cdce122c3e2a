// An operator greets: who that is, for the audit log.
#include "broker/server/login_uid.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"

namespace gmb::broker {

std::optional<uid_t> LoginUidOf(pid_t pid) {
  // By which the kernel says that nobody logged in.
  constexpr uint32_t kNobody = std::numeric_limits<uint32_t>::max();
  if (pid <= 0) return std::nullopt;
  const std::string path = absl::StrCat("/proc/", pid, "/loginuid");
  const base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return std::nullopt;
  std::array<char, 16> text{};
  const ssize_t n = ::read(fd.get(), text.data(), text.size());
  uint32_t uid = kNobody;
  if (n <= 0 ||
      !absl::SimpleAtoi(absl::string_view(text.data(), static_cast<size_t>(n)),
                        &uid))
    return std::nullopt;
  return uid == kNobody ? std::nullopt : std::optional<uid_t>(uid);
}

}  // namespace gmb::broker
