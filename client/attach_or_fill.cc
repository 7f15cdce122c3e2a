// Client::AttachOrFill: of several processes that start at once, one fills a
// shared lease.
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "base/deadline.h"
#include "base/status_macros.h"
#include "client/no_throw.h"
#include "gmb/client.h"
#include "gmb/error.h"

namespace gmb {
namespace {

bool Refused(const absl::Status& status, ErrorReason reason) {
  const std::optional<ErrorDetail> detail = GetErrorDetail(status);
  return detail.has_value() && detail->reason == reason;
}

// One call of AttachOrFill.
class Election {
 public:
  Election(Client& client, const std::string& name, uint64_t bytes,
           const AcquireOptions& options, const FillHandler& fill)
      : client_(client),
        name_(name),
        bytes_(bytes),
        options_(options),
        fill_(fill),
        deadline_(options.wait) {
    options_.share_as = name;
  }

  // The name changes hands while it runs, so each answer is only tried out.
  absl::StatusOr<SharedLease> Run() {
    if (name_.empty()) {
      return absl::InvalidArgumentError(
          "gmb: a shared lease needs a name, and this one is empty");
    }
    for (;;) {
      const bool last = deadline_.IsOver();
      absl::StatusOr<Lease> attached = Attach();
      if (attached.ok()) return Accept(*std::move(attached));
      if (!Refused(attached.status(), ErrorReason::kNoSuchLease))
        return attached.status();
      absl::StatusOr<Lease> acquired = Acquire();
      if (acquired.ok()) return FillAndSeal(*std::move(acquired));
      if (last || !Refused(acquired.status(), ErrorReason::kNameTaken))
        return acquired.status();
    }
  }

 private:
  [[nodiscard]] absl::Duration Left() const { return deadline_.Left(); }

  absl::StatusOr<Lease> Attach() {
    AttachOptions how;
    how.wait = Left();
    how.access_from = options_.access_from;
    how.cancel = options_.cancel;
    how.on_waiting = options_.on_waiting;
    return client_.Attach(name_, how);
  }

  absl::StatusOr<Lease> Acquire() {
    options_.wait = Left();
    return client_.Acquire(bytes_, options_);
  }

  absl::StatusOr<SharedLease> Accept(Lease lease) const {
    if (lease.size_bytes() < bytes_) {
      return absl::FailedPreconditionError(absl::StrCat(
          "gmb: the shared lease of this name is another one: name=", name_,
          " bytes=", lease.size_bytes(), " wanted=", bytes_));
    }
    if (!options_.device.empty() && lease.device() != options_.device) {
      return absl::FailedPreconditionError(absl::StrCat(
          "gmb: the shared lease of this name is on another device: name=",
          name_, " device=", lease.device(), " wanted=", options_.device));
    }
    return SharedLease{std::move(lease), false};
  }

  absl::StatusOr<SharedLease> FillAndSeal(Lease lease) {
    {
      GMB_ASSIGN_OR_RETURN(const Scope scope, client_.Enter(Left()));
      GMB_RETURN_IF_ERROR(fill_(lease));
    }
    GMB_RETURN_IF_ERROR(lease.Seal());
    return SharedLease{std::move(lease), true};
  }

  Client& client_;
  const std::string& name_;
  const uint64_t bytes_;
  AcquireOptions options_;
  const FillHandler& fill_;
  const base::Deadline deadline_;
};

}  // namespace

absl::StatusOr<SharedLease> Client::AttachOrFill(const std::string& name,
                                                 uint64_t bytes,
                                                 const AcquireOptions& options,
                                                 const FillHandler& fill) {
  return internal::NoThrow([&]() -> absl::StatusOr<SharedLease> {
    if (!options.share_as.empty() && options.share_as != name) {
      return absl::InvalidArgumentError(
          "gmb: share_as is another name than the one to attach to");
    }
    return Election(*this, name, bytes, options, fill).Run();
  });
}

}  // namespace gmb
