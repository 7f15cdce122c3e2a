#include "tests/component/reclaim_liar.h"

#include <sys/mman.h>

#include <stdexcept>
#include <utility>

#include "absl/time/time.h"
#include "ipc/gate_word.h"

namespace gmb::component {
namespace {

constexpr absl::Duration kLong = absl::Seconds(60);

void Require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(what);
}

}  // namespace

Liar::Mapping::~Mapping() { ::munmap(at, bytes); }

Liar::Liar(const std::string& tenant_dir) : tenant_dir_(tenant_dir) {
  auto socket =
      ipc::SeqpacketSocket::Connect(tenant_dir + "/handle.sock", kLong);
  Require(socket.ok(), "no broker");
  socket_.emplace(*std::move(socket));
  std::vector<base::UniqueFd> fds;
  const v1::BrokerFrame challenge = ReceiveFrame(&fds);
  v1::ClientFrame hello;
  hello.mutable_hello()->set_protocol_version(1);
  hello.mutable_hello()->set_nonce(challenge.challenge().nonce());
  hello.mutable_hello()->set_program("liar");
  Require(socket_->Send(hello.SerializeAsString(), {}, true, kLong).ok(),
          "no Hello");
  welcome_ = ReceiveFrame(&fds).welcome();
  Require(welcome_.gate_layout() == 1 && fds.size() == 1, "no gate page");
  gate_fd_ = std::move(fds.front());
  gate_.emplace(ipc::GatePage::Map(gate_fd_.get()).value());
  stream_ = std::make_unique<RawStream>(tenant_dir_, welcome_.token());
}

v1::BrokerFrame Liar::ReceiveFrame(std::vector<base::UniqueFd>* fds) {
  absl::StatusOr<ipc::Packet> packet = socket_->Receive(kLong);
  Require(packet.ok(), "no frame");
  v1::BrokerFrame frame;
  Require(frame.ParseFromString(packet->bytes), "not a frame");
  *fds = std::move(packet->fds);
  return frame;
}

v1::BrokerMessage Liar::Receive() {
  std::optional<v1::BrokerMessage> message = stream_->Receive();
  Require(message.has_value(), "the stream has ended");
  return *std::move(message);
}

uint64_t Liar::Send(v1::ClientMessage message) {
  message.set_request_id(++last_id_);
  Require(stream_->Send(message), "the stream has ended");
  return last_id_;
}

v1::BrokerMessage Liar::Ask(v1::ClientMessage message) {
  return AwaitAnswer(Send(std::move(message)));
}

v1::BrokerMessage Liar::AwaitAnswer(uint64_t id) {
  while (!answers_.contains(id)) {
    v1::BrokerMessage message = Receive();
    if (message.has_waiting()) continue;
    if (message.request_id() == 0) {
      notices_.push_back(std::move(message));
    } else {
      answers_[message.request_id()] = std::move(message);
    }
  }
  return answers_.extract(id).mapped();
}

v1::BrokerMessage Liar::AwaitNotice(v1::BrokerMessage::KindCase kind) {
  while (true) {
    v1::BrokerMessage message;
    if (notices_.empty()) {
      message = Receive();
    } else {
      message = std::move(notices_.front());
      notices_.pop_front();
    }
    if (message.request_id() != 0 && !message.has_waiting()) {
      answers_[message.request_id()] = std::move(message);
    } else if (message.kind_case() == kind) {
      return message;
    }
  }
}

void Liar::BreakStream() {
  stream_.reset();
  notices_.clear();
  stream_ = std::make_unique<RawStream>(tenant_dir_, welcome_.token());
}

void Liar::TakeSlabs(uint64_t lease, uint32_t slabs) {
  Memory& memory = memory_[lease];
  while (memory.slabs.size() < slabs) {
    std::vector<base::UniqueFd> fds;
    const v1::BrokerFrame frame = ReceiveFrame(&fds);
    Require(frame.has_slabs() && frame.slabs().lease_id() == lease,
            "not this lease's slabs");
    for (size_t i = 0; i < fds.size(); ++i) {
      const uint64_t bytes = frame.slabs().slab_bytes(static_cast<int>(i));
      void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_SHARED, fds[i].get(), 0);
      Require(at != MAP_FAILED, "cannot map");
      ::madvise(at, bytes, MADV_DONTFORK);
      memory.slabs.push_back(std::make_unique<Mapping>(at, bytes));
    }
    const std::string ack =
        AckFrame(frame.slabs().frame_id()).SerializeAsString();
    Require(socket_->Send(ack, {}, false, kLong).ok(), "no ack");
  }
}

uint64_t Liar::Acquire(uint64_t bytes, v1::Contents contents, bool silent) {
  v1::ClientMessage message;
  message.mutable_acquire()->set_bytes(bytes);
  message.mutable_acquire()->set_contents(contents);
  message.mutable_acquire()->mutable_wait()->set_seconds(20);
  const v1::BrokerMessage answer = Ask(std::move(message));
  if (!answer.has_grant())
    throw std::runtime_error("no grant: " + answer.ShortDebugString());
  const uint64_t lease = answer.grant().lease_id();
  TakeSlabs(lease, answer.grant().slabs());
  if (!silent) SayMapped(lease, 0);
  return lease;
}

void Liar::TurnGateOn() {
  v1::ClientMessage message;
  message.mutable_set_gate()->set_on(true);
  Require(Ask(std::move(message)).has_gate_set(), "the gate is not on");
}

void Liar::Park() const {
  const uint64_t epoch = ipc::LookAtGate(cells()).epoch();
  cells().word = ipc::GateWord(ipc::GateState::kParked, 0, epoch + 1).bits();
}

v1::Evict Liar::AwaitEvict() {
  return AwaitNotice(v1::BrokerMessage::kEvict).evict();
}

void Liar::Unmap(const v1::Evict& evict) {
  ReleaseMemory(evict.lease_id());
  SayUnmapped(evict.lease_id(), evict.move());
}

void Liar::SayUnmapped(uint64_t lease, uint64_t move) {
  v1::ClientMessage message;
  message.mutable_unmapped()->set_lease_id(lease);
  message.mutable_unmapped()->set_move(move);
  Require(stream_->Send(message), "the stream has ended");
}

v1::Map Liar::AwaitMap() {
  const v1::Map map = AwaitNotice(v1::BrokerMessage::kMap).map();
  TakeSlabs(map.lease_id(), map.slabs());
  return map;
}

void Liar::SayMapped(uint64_t lease, uint64_t move) {
  v1::ClientMessage message;
  message.mutable_mapped()->set_lease_id(lease);
  message.mutable_mapped()->set_move(move);
  Require(stream_->Send(message), "the stream has ended");
}

uint64_t* Liar::Words(uint64_t lease) const {
  return static_cast<uint64_t*>(memory_.at(lease).slabs.front()->at);
}

}  // namespace gmb::component
