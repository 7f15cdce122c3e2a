#include "tests/client/fake_broker.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <utility>

#include "device/devices.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "ipc/random.h"
#include "proto/error_status.h"
#include "tests/client/or_throw.h"

namespace gmb::test {
namespace {

// The session whose message this thread serves.
thread_local std::shared_ptr<void> serving;

constexpr absl::Duration kPatience = absl::Seconds(10);

}  // namespace

class FakeBroker::Service final : public v1::SessionService::Service {
 public:
  explicit Service(FakeBroker* broker) : broker_(*broker) {}

  grpc::Status Session(
      grpc::ServerContext* context,
      grpc::ServerReaderWriter<v1::BrokerMessage, v1::ClientMessage>* stream)
      override {
    return broker_.Session(context, stream);
  }

 private:
  FakeBroker& broker_;
};

FakeBroker::FakeBroker(const std::string& dir, Options options)
    : options_(std::move(options)),
      dir_(dir),
      allocator_(OrThrow(device::OpenHostAllocator(
          {.capacity_bytes = options_.capacity_bytes, .uuid = "host-0"}))),
      listener_(OrThrow(ipc::Listener::Listen(dir + "/handle.sock", 0600,
                                              ipc::SocketType::kSeqpacket))),
      stop_(OrThrow(ipc::Wakeup::Create())),
      service_(std::make_unique<Service>(this)) {
  StartServer();
  acceptor_ = std::thread([this] { Accept(); });
}

void FakeBroker::StartServer() {
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + dir_ + "/gmb.sock",
                           grpc::InsecureServerCredentials());
  builder.RegisterService(service_.get());
  server_ = builder.BuildAndStart();
  if (server_ == nullptr) throw std::runtime_error("no gRPC server in " + dir_);
}

void FakeBroker::GoAway() {
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

void FakeBroker::ComeBack() {
  constexpr uint64_t kFramesOfABroker = uint64_t{1} << 32;
  {
    base::MutexLock lock(&mu_);
    for (const auto& [token, peer] : peers_) {
      peer->last_frame = kFramesOfABroker;
      peer->answers.clear();
    }
  }
  StartServer();
}

FakeBroker::~FakeBroker() {
  std::vector<std::thread> connections;
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    for (const auto& [token, peer] : peers_)
      shutdown(peer->socket.fd(), SHUT_RDWR);
    changed_.NotifyAll();
  }
  stop_->Notify();
  acceptor_.join();
  if (server_ != nullptr) server_->Shutdown(std::chrono::system_clock::now());
  {
    base::MutexLock lock(&mu_);
    connections.swap(connections_);
  }
  for (std::thread& connection : connections) connection.join();
}

void FakeBroker::OnMessage(MessageHandler handler) {
  base::MutexLock lock(&mu_);
  on_message_ = std::move(handler);
}

void FakeBroker::OnGreet(GreetHandler handler) {
  base::MutexLock lock(&mu_);
  on_greet_ = std::move(handler);
}

void FakeBroker::RefuseStreams(grpc::Status status) {
  base::MutexLock lock(&mu_);
  refuse_ = std::move(status);
}

void FakeBroker::Accept() {
  for (;;) {
    std::array<pollfd, 2> fds = {
        {{listener_->fd(), POLLIN, 0}, {stop_->fd(), POLLIN, 0}}};
    poll(fds.data(), fds.size(), -1);
    base::MutexLock lock(&mu_);
    if (stopping_) return;
    auto accepted = listener_->TryAccept();
    if (!accepted.ok() || !accepted->has_value()) continue;
    connections_.emplace_back(
        [this](ipc::SeqpacketSocket socket) { Converse(std::move(socket)); },
        ipc::SeqpacketSocket(**std::move(accepted)));
  }
}

void FakeBroker::Converse(ipc::SeqpacketSocket socket) {
  GreetHandler greet;
  {
    base::MutexLock lock(&mu_);
    greet = on_greet_;
  }
  if (greet != nullptr) return greet(socket);
  const std::shared_ptr<Peer> peer = Greet(std::move(socket));
  if (peer == nullptr) return;
  ReadAcks(*peer);
  EndSession(peer);
}

std::shared_ptr<FakeBroker::Peer> FakeBroker::Greet(
    ipc::SeqpacketSocket socket) {
  if (!socket.EnableCredentials().ok()) return nullptr;
  v1::BrokerFrame frame;
  frame.mutable_challenge()->set_nonce(OrThrow(ipc::RandomToken(16)));
  frame.mutable_challenge()->set_protocol_version(1);
  if (!socket.Send(frame.SerializeAsString(), {}, false, kPatience).ok())
    return nullptr;
  auto packet = socket.Receive(kPatience);
  v1::ClientFrame hello;
  if (!packet.ok() || !hello.ParseFromString(packet->bytes) ||
      !packet->credentials.has_value() ||
      hello.hello().nonce() != frame.challenge().nonce()) {
    return nullptr;
  }
  std::vector<int> fds;
  base::UniqueFd page;
  if (options_.gate_layout != 0) {
    page = OrThrow(ipc::CreateGatePage());
    fds.push_back(page.get());
  }
  auto peer =
      std::make_shared<Peer>(Peer{.id = 0,
                                  .token = OrThrow(ipc::RandomToken(16)),
                                  .socket = std::move(socket)});
  {
    base::MutexLock lock(&mu_);
    if (stopping_) return nullptr;
    peer->id = ++last_session_;
    v1::Welcome& welcome = *frame.mutable_welcome();
    welcome.set_session_id(peer->id);
    welcome.set_token(peer->token);
    welcome.set_tenant(hello.hello().tenant_token().empty()
                           ? "fake"
                           : hello.hello().tenant_token());
    welcome.set_broker_version("fake of " + hello.hello().program());
    welcome.add_warnings("this is a fake");
    welcome.set_gate_layout(options_.gate_layout);
    if (page.valid()) peer->gate = OrThrow(ipc::GatePage::Map(page.get()));
    v1::DeviceInfo& device = *welcome.add_devices();
    device.set_uuid("host-0");
    device.set_name("host memory");
    device.set_kind(v1::DEVICE_KIND_HOST);
    device.set_granularity_bytes(allocator_->info().granularity_bytes);
    device.set_total_bytes(options_.capacity_bytes);
    peers_[peer->token] = peer;
    current_ = peer;
  }
  ++open_sessions_;
  peer->socket.Send(frame.SerializeAsString(), fds, false, kPatience)
      .IgnoreError();
  return peer;
}

void FakeBroker::ReadAcks(Peer& peer) {
  for (;;) {
    auto packet = peer.socket.Receive(absl::InfiniteDuration());
    if (!packet.ok()) return;
    ++acknowledged_;
    base::MutexLock lock(&mu_);
    changed_.NotifyAll();
  }
}

void FakeBroker::EndSession(const std::shared_ptr<Peer>& peer) {
  --open_sessions_;
  base::MutexLock lock(&mu_);
  peers_.erase(peer->token);
  if (current_ == peer) current_ = nullptr;
  for (const auto& [id, keys] : peer->leases) {
    for (const device::SlabKey key : keys)
      allocator_->Destroy(key).IgnoreError();
  }
  peer->leases.clear();
  if (peer->context != nullptr) peer->context->TryCancel();
  changed_.NotifyAll();
}

grpc::Status FakeBroker::Session(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::BrokerMessage, v1::ClientMessage>* stream) {
  const auto token = context->client_metadata().find("gmb-session-bin");
  std::shared_ptr<Peer> peer;
  {
    base::MutexLock lock(&mu_);
    ++streams_;
    changed_.NotifyAll();
    if (!refuse_.ok()) return refuse_;
    if (token != context->client_metadata().end()) {
      const auto it =
          peers_.find(std::string(token->second.data(), token->second.size()));
      if (it != peers_.end()) peer = it->second;
    }
    if (peer == nullptr) {
      return proto::ToGrpcStatus(
          proto::MakeError(v1::NO_SESSION, "unknown token: greet again"));
    }
    peer->stream = stream;
    peer->context = context;
  }
  serving = peer;
  v1::ClientMessage message;
  while (stream->Read(&message)) {
    MessageHandler handler;
    {
      base::MutexLock lock(&mu_);
      messages_.push_back(message);
      handler = on_message_;
      changed_.NotifyAll();
    }
    if (handler != nullptr) {
      handler(message);
    } else {
      Serve(message);
    }
  }
  serving.reset();
  base::MutexLock lock(&mu_);
  if (peer->stream == stream) {
    peer->stream = nullptr;
    peer->context = nullptr;
  }
  return grpc::Status::OK;
}

std::shared_ptr<FakeBroker::Peer> FakeBroker::current() const {
  if (serving != nullptr) return std::static_pointer_cast<Peer>(serving);
  base::MutexLock lock(&mu_);
  return current_;
}

}  // namespace gmb::test
