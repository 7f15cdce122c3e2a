// Keeps tenants that do not read their slabs from using up the kernel's limit.
#include "broker/server/fds_in_flight.h"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <limits>

#include "ipc/seqpacket.h"

namespace gmb::broker {
namespace {

// Room for gates' pages on the way to new sessions.
constexpr uint64_t kSpare = 256;
// A socket that nobody reads costs the broker an fd of its own, however few
// wait in it.
constexpr uint64_t kLeast = 8;

}  // namespace

uint64_t FdsInFlight::MostOfThisProcess() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return std::numeric_limits<uint64_t>::max();
  return limit.rlim_cur > 2 * kSpare ? limit.rlim_cur - kSpare
                                     : limit.rlim_cur / 2;
}

bool FdsInFlight::Take(const std::string& tenant, uint64_t fds) {
  base::MutexLock lock(&mu_);
  uint64_t& held = by_tenant_[tenant];
  // A single frame always passes: the kernel decides.
  if (held > 0 && held + fds > most_ - std::min(most_, total_)) return false;
  held += fds;
  total_ += fds;
  return true;
}

void FdsInFlight::Add(const std::string& tenant, uint64_t fds) {
  base::MutexLock lock(&mu_);
  by_tenant_[tenant] += fds;
  total_ += fds;
}

void FdsInFlight::GiveBack(const std::string& tenant, uint64_t fds) {
  base::MutexLock lock(&mu_);
  const auto held = by_tenant_.find(tenant);
  total_ -= fds;
  held->second -= fds;
  if (held->second == 0) by_tenant_.erase(held);
}

UnreadFds::~UnreadFds() {
  base::MutexLock lock(&mu_);
  if (taken_ > 0) all_->GiveBack(tenant_, taken_);
}

bool UnreadFds::Take(uint64_t fds) {
  base::MutexLock lock(&mu_);
  const uint64_t counted = std::max(fds, kLeast);
  if (!all_->Take(tenant_, counted)) return false;
  taken_ += counted;
  sending_ = counted;
  return true;
}

void UnreadFds::Inherit() {
  base::MutexLock lock(&mu_);
  all_->Add(tenant_, ipc::kMaxFds);
  taken_ += ipc::kMaxFds;
}

void UnreadFds::Sent() {
  base::MutexLock lock(&mu_);
  sending_ = 0;
}

void UnreadFds::NotSent() {
  base::MutexLock lock(&mu_);
  if (sending_ > 0) all_->GiveBack(tenant_, sending_);
  taken_ -= std::exchange(sending_, 0);
}

bool UnreadFds::GiveBackIfRead(int socket) {
  base::MutexLock lock(&mu_);
  if (taken_ == 0) return true;
  if (sending_ > 0 || HasUnread(socket)) return false;
  all_->GiveBack(tenant_, std::exchange(taken_, 0));
  return true;
}

bool HasUnread(int socket) {
  int bytes = 0;
  return ::ioctl(socket, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

}  // namespace gmb::broker
