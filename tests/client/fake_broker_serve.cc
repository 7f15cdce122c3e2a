// How the fake broker serves a session: well, or as it is told.
#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <utility>
#include <variant>

#include "grpcpp/server_context.h"
#include "grpcpp/support/sync_stream.h"
#include "proto/error_status.h"
#include "tests/client/fake_broker.h"
#include "tests/client/or_throw.h"

namespace gmb::test {
namespace {

constexpr absl::Duration kServePatience = absl::Seconds(10);

}  // namespace

void FakeBroker::Serve(const v1::ClientMessage& message) {
  if (message.has_mapped() || message.has_cancel() || message.has_unmapped() ||
      message.has_set_trimmable() || message.has_trimmed()) {
    return;
  }
  const std::shared_ptr<Peer> peer = current();
  if (peer == nullptr) return;
  std::optional<v1::BrokerMessage> answer;
  {
    base::MutexLock lock(&mu_);
    const auto it = peer->answers.find(message.request_id());
    if (it != peer->answers.end()) answer = it->second;
  }
  if (!answer.has_value()) {
    answer = Answer(message);
    base::MutexLock lock(&mu_);
    peer->answers[message.request_id()] = *answer;
  }
  Say(*answer);
}

v1::BrokerMessage FakeBroker::Answer(const v1::ClientMessage& message) {
  v1::BrokerMessage answer;
  if (message.has_acquire() || message.has_attach()) {
    answer = MakeLease(message);
  } else if (message.has_drop()) {
    answer.mutable_dropped()->set_name(message.drop().name());
  } else if (message.has_release()) {
    answer = ReleaseLease(message.release().lease_id());
  } else if (message.has_set_gate()) {
    answer.mutable_gate_set();
  } else if (message.has_restore()) {
    answer.mutable_restored();
  } else if (message.has_seal()) {
    answer.mutable_sealed()->set_lease_id(message.seal().lease_id());
  } else {
    v1::QuotaView& quota = *answer.mutable_quota_report()->add_quotas();
    quota.set_device("host-0");
    quota.set_pool_bytes(options_.capacity_bytes);
    quota.set_limit_bytes(options_.capacity_bytes);
    quota.set_weight(1);
    quota.set_obtainable_bytes(FreeBytes());
    quota.set_leased_bytes(options_.capacity_bytes - quota.obtainable_bytes());
  }
  answer.set_request_id(message.request_id());
  return answer;
}

v1::BrokerMessage FakeBroker::MakeLease(const v1::ClientMessage& request,
                                        bool send) {
  const std::shared_ptr<Peer> peer = current();
  v1::BrokerMessage answer;
  answer.set_request_id(request.request_id());
  const uint64_t granularity = granularity_bytes();
  const uint64_t asked =
      request.has_attach() ? kSharedBytes : request.acquire().bytes();
  const uint64_t left = (asked + granularity - 1) / granularity * granularity;
  v1::Grant& grant = *answer.mutable_grant();
  grant.set_attached(request.has_attach());
  grant.set_bytes(left);
  grant.set_device("host-0");
  grant.set_slabs(static_cast<uint32_t>((left + options_.slab_bytes - 1) /
                                        options_.slab_bytes));
  {
    base::MutexLock lock(&mu_);
    grant.set_lease_id(++last_lease_);
    if (left == 0 || left > *allocator_->FreeBytes()) {
      *answer.mutable_error() = proto::ToWireError(
          proto::MakeError(left == 0 ? v1::BAD_REQUEST : v1::POOL_EXHAUSTED,
                           "no such memory: ask for other bytes",
                           {.deficit_bytes = left,
                            .retry_after = absl::Milliseconds(1500),
                            .field = "bytes"}));
      return answer;
    }
    peer->leases[grant.lease_id()];
  }
  v1::Slabs frame;
  frame.set_lease_id(grant.lease_id());
  frame.set_request_id(request.request_id());
  auto slabs = MakeSlabs(grant.lease_id(), left);
  for (const auto& [bytes, fd] : slabs) {
    if (request.has_attach()) FillSlab(fd, bytes, kSharedByte);
  }
  if (send) SendInFrames(frame, std::move(slabs));
  return answer;
}

std::vector<std::pair<uint64_t, base::UniqueFd>> FakeBroker::MakeSlabs(
    uint64_t lease_id, uint64_t left) {
  const std::shared_ptr<Peer> peer = current();
  std::vector<std::pair<uint64_t, base::UniqueFd>> slabs;
  while (left > 0) {
    const uint64_t bytes = std::min(left, options_.slab_bytes);
    base::MutexLock lock(&mu_);
    device::CreatedSlab slab = OrThrow(allocator_->Create(bytes));
    peer->leases[lease_id].push_back(slab.key);
    slabs.emplace_back(bytes,
                       std::move(std::get<base::UniqueFd>(slab.exported)));
    left -= bytes;
  }
  return slabs;
}

void FakeBroker::SendInFrames(
    const v1::Slabs& frame,
    std::vector<std::pair<uint64_t, base::UniqueFd>> slabs) {
  const auto in_frame = static_cast<size_t>(options_.slabs_in_frame);
  for (size_t first = 0; first < slabs.size(); first += in_frame) {
    v1::BrokerFrame next;
    *next.mutable_slabs() = frame;
    next.mutable_slabs()->set_slabs_in_lease(
        static_cast<uint32_t>(slabs.size()));
    next.mutable_slabs()->set_first_slab(static_cast<uint32_t>(first));
    std::vector<int> fds;
    for (size_t i = first; i < std::min(first + in_frame, slabs.size()); ++i) {
      next.mutable_slabs()->add_slab_bytes(slabs[i].first);
      fds.push_back(slabs[i].second.get());
    }
    SendFrame(next, fds);
  }
}

v1::BrokerMessage FakeBroker::ReleaseLease(uint64_t lease_id) {
  const std::shared_ptr<Peer> peer = current();
  v1::BrokerMessage answer;
  base::MutexLock lock(&mu_);
  const auto it = peer->leases.find(lease_id);
  if (it == peer->leases.end()) {
    *answer.mutable_error() = proto::ToWireError(proto::MakeError(
        v1::NO_SUCH_LEASE, "no such lease: was it released before?"));
    return answer;
  }
  for (const device::SlabKey key : it->second)
    allocator_->Destroy(key).IgnoreError();
  peer->leases.erase(it);
  answer.mutable_released()->set_lease_id(lease_id);
  return answer;
}

void FakeBroker::Say(const v1::BrokerMessage& message) {
  const std::shared_ptr<Peer> peer = current();
  base::MutexLock lock(&mu_);
  if (peer != nullptr && peer->stream.has_value()) peer->stream->write(message);
}

void FakeBroker::SendFrame(const v1::BrokerFrame& frame,
                           const std::vector<int>& fds) {
  const std::shared_ptr<Peer> peer = current();
  if (peer == nullptr) return;
  v1::BrokerFrame numbered = frame;
  if (numbered.has_slabs() && numbered.slabs().frame_id() == 0) {
    base::MutexLock lock(&mu_);
    numbered.mutable_slabs()->set_frame_id(++peer->last_frame);
  }
  SendBytes(numbered.SerializeAsString(), fds);
}

void FakeBroker::SendBytes(const std::string& bytes,
                           const std::vector<int>& fds) {
  const std::shared_ptr<Peer> peer = current();
  if (peer == nullptr) return;
  peer->socket.Send(bytes, fds, false, kServePatience).IgnoreError();
}

void FakeBroker::BreakStream() {
  base::MutexLock lock(&mu_);
  if (current_ != nullptr && current_->stream.has_value())
    current_->stream->end();
}

void FakeBroker::HangUp() {
  base::MutexLock lock(&mu_);
  if (current_ != nullptr) shutdown(current_->socket.fd(), SHUT_RDWR);
}

bool FakeBroker::WaitUntil(const std::function<bool()>& done) {
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!done()) {
    if (std::chrono::steady_clock::now() >= deadline) return false;
    base::MutexLock lock(&mu_);
    // Not everything that a test looks at notifies.
    changed_.WaitUntil(
        &mu_, std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  }
  return true;
}

std::vector<v1::ClientMessage> FakeBroker::messages() const {
  base::MutexLock lock(&mu_);
  return messages_;
}

int FakeBroker::Count(v1::ClientMessage::KindCase kind) const {
  base::MutexLock lock(&mu_);
  return static_cast<int>(std::count_if(
      messages_.begin(), messages_.end(),
      [kind](const v1::ClientMessage& m) { return m.kind_case() == kind; }));
}

uint64_t FakeBroker::granularity_bytes() const {
  base::MutexLock lock(&mu_);
  return allocator_->info().granularity_bytes;
}

int FakeBroker::leases() const {
  base::MutexLock lock(&mu_);
  size_t leases = 0;
  for (const auto& [token, peer] : peers_) leases += peer->leases.size();
  return static_cast<int>(leases);
}

uint64_t FakeBroker::FreeBytes() const {
  base::MutexLock lock(&mu_);
  return OrThrow(allocator_->FreeBytes());
}

}  // namespace gmb::test
