// Remembers the processes that have greeted, so that no other reaches HTTP/2.
#include "broker/doors/admission.h"

#include <optional>
#include <utility>

#include "ipc/pidfd.h"
#include "ipc/seqpacket.h"

namespace gmb::broker {

PeerProcess ProcessOf(const base::UniqueFd* pidfd, pid_t pid) {
  const std::optional<uint64_t> number =
      pidfd == nullptr ? std::nullopt : ipc::ProcessNumber(*pidfd);
  return {.numbered = number.has_value(),
          .number = number.value_or(static_cast<uint64_t>(pid))};
}

absl::StatusOr<PeerProcess> ConnectedProcess(int fd) {
  const absl::StatusOr<ipc::PeerCredentials> peer = ipc::ConnectedPeer(fd);
  if (!peer.ok()) return peer.status();
  const absl::StatusOr<base::UniqueFd> pidfd =
      ipc::OpenPeerPidfd(fd, peer->pid);
  if (absl::IsNotFound(pidfd.status())) return ProcessOf(nullptr, peer->pid);
  if (!pidfd.ok()) return pidfd.status();
  return ProcessOf(&*pidfd, peer->pid);
}

void Admission::Add(uint64_t session, const Door& door,
                    const PeerProcess& process, const std::string& tenant) {
  std::function<void()> on_add;
  {
    base::MutexLock lock(&mu_);
    const Guest guest{door, process};
    guests_[session] = guest;
    sessions_of_[guest][session] = tenant;
    on_add = on_add_;
  }
  if (on_add) on_add();
}

void Admission::Remove(uint64_t session) {
  base::MutexLock lock(&mu_);
  const auto guest = guests_.find(session);
  if (guest == guests_.end()) return;
  const auto sessions = sessions_of_.find(guest->second);
  sessions->second.erase(session);
  if (sessions->second.empty()) sessions_of_.erase(sessions);
  guests_.erase(guest);
}

std::vector<uint64_t> Admission::SessionsOf(const Door& door,
                                            const PeerProcess& process) const {
  base::MutexLock lock(&mu_);
  const auto found = sessions_of_.find({door, process});
  if (found == sessions_of_.end()) return {};
  std::vector<uint64_t> sessions;
  for (const auto& [session, tenant] : found->second)
    sessions.push_back(session);
  return sessions;
}

std::string Admission::TenantOf(const Door& door,
                                const PeerProcess& process) const {
  base::MutexLock lock(&mu_);
  const auto found = sessions_of_.find({door, process});
  return found == sessions_of_.end() ? "" : found->second.begin()->second;
}

size_t Admission::SessionCount(const Door& door,
                               const PeerProcess& process) const {
  base::MutexLock lock(&mu_);
  const auto found = sessions_of_.find({door, process});
  return found == sessions_of_.end() ? 0 : found->second.size();
}

size_t Admission::sessions() const {
  base::MutexLock lock(&mu_);
  return guests_.size();
}

void Admission::SetOnAdd(std::function<void()> on_add) {
  base::MutexLock lock(&mu_);
  on_add_ = std::move(on_add);
}

}  // namespace gmb::broker
