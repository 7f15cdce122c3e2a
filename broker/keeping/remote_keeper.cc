// The handles of slabs, from their creation to their destruction: with the
// keeper, and here.
#include "broker/keeping/remote_keeper.h"

#include <fcntl.h>

#include <cerrno>
#include <memory>
#include <utility>
#include <variant>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gmb::broker {
namespace {

constexpr absl::string_view kSlabPrefix = "slab/";

}  // namespace

std::string RemoteKeeper::KeyOf(SlabId slab) {
  return absl::StrCat(kSlabPrefix, slab);
}

std::optional<SlabId> RemoteKeeper::SlabOf(absl::string_view key) {
  SlabId slab = 0;
  if (!absl::ConsumePrefix(&key, kSlabPrefix) ||
      !absl::SimpleAtoi(key, &slab) || key != absl::StrCat(slab)) {
    return std::nullopt;
  }
  return slab;
}

absl::Status RemoteKeeper::Put(SlabId slab, device::ShareableHandle handle) {
  auto shared =
      std::make_shared<const device::ShareableHandle>(std::move(handle));
  {
    base::MutexLock lock(&mu_);
    if (!handles_.try_emplace(slab, shared).second) {
      return absl::AlreadyExistsError(
          absl::StrCat("slab is already kept: slab=", slab));
    }
  }
  const auto* const fd = std::get_if<base::UniqueFd>(&*shared);
  if (fd == nullptr) return absl::OkStatus();
  const absl::Status put =
      client_->Put({.key = KeyOf(slab), .fds = {SharedFd(shared, fd)}});
  // A keeper that is full takes no slab from anybody.
  if (!put.ok()) {
    base::MutexLock lock(&mu_);
    not_kept_.insert(slab);
  }
  return absl::OkStatus();
}

uint64_t RemoteKeeper::not_kept() const {
  base::MutexLock lock(&mu_);
  return not_kept_.size();
}

absl::Status RemoteKeeper::Remove(SlabId slab) {
  SharedHandle removed;  // closed after the lock is given up
  {
    base::MutexLock lock(&mu_);
    const auto found = handles_.find(slab);
    if (found == handles_.end()) {
      return absl::NotFoundError(absl::StrCat("slab is not kept: slab=", slab));
    }
    removed = std::move(found->second);
    handles_.erase(found);
    not_kept_.erase(slab);
  }
  if (!std::holds_alternative<base::UniqueFd>(*removed))
    return absl::OkStatus();
  const absl::Status gone = client_->Remove(KeyOf(slab));
  return absl::IsNotFound(gone) ? absl::OkStatus() : gone;
}

SharedHandle RemoteKeeper::Get(SlabId slab) const {
  if (on_get_ != nullptr) on_get_(slab);
  base::MutexLock lock(&mu_);
  const auto found = handles_.find(slab);
  return found == handles_.end() ? nullptr : found->second;
}

std::vector<SlabId> RemoteKeeper::List() const {
  base::MutexLock lock(&mu_);
  std::vector<SlabId> slabs;
  slabs.reserve(handles_.size());
  for (const auto& [slab, handle] : handles_) slabs.push_back(slab);
  return slabs;
}

absl::Status RemoteKeeper::Adopt(const Kept& kept) {
  const std::optional<SlabId> slab = SlabOf(kept.key);
  if (!slab.has_value() || kept.fds.size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("what is kept under this name is no slab: ", kept.key));
  }
  base::UniqueFd fd(::fcntl(kept.fds[0]->get(), F_DUPFD_CLOEXEC, 0));
  if (!fd.valid())
    return absl::ErrnoToStatus(errno, "cannot duplicate a slab's fd");
  base::MutexLock lock(&mu_);
  if (!handles_
           .try_emplace(*slab, std::make_shared<const device::ShareableHandle>(
                                   std::move(fd)))
           .second) {
    return absl::AlreadyExistsError(
        absl::StrCat("slab is already kept: slab=", *slab));
  }
  return absl::OkStatus();
}

}  // namespace gmb::broker
