#include "tests/client/fake_broker.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <chrono>
#include <cstdlib>
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

bool FakeBroker::OnlyGrpc() {
  return std::getenv("GMB_FAKE_BROKER_GRPC") != nullptr;
}

FakeBroker::FakeBroker(const std::string& dir, Options options)
    : options_(std::move(options)),
      dir_(dir),
      allocator_(OrThrow(device::OpenHostAllocator(
          {.capacity_bytes = options_.capacity_bytes, .uuid = "host-0"}))),
      listener_(OrThrow(ipc::Listener::Listen(dir + "/handle.sock", 0600,
                                              ipc::SocketType::kSeqpacket))),
      stop_(OrThrow(ipc::Wakeup::Create())),
      service_(std::make_unique<Service>(this)),
      takes_packets_(options_.takes_packets) {
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
  {
    base::MutexLock lock(&mu_);
    away_ = true;
    for (const auto& [token, peer] : peers_) {
      if (peer->stream.has_value()) peer->stream->end();
    }
  }
  server_->Shutdown(std::chrono::system_clock::now());
  server_.reset();
}

void FakeBroker::ComeBack(bool takes_packets) {
  constexpr uint64_t kFramesOfABroker = uint64_t{1} << 32;
  {
    base::MutexLock lock(&mu_);
    for (const auto& [token, peer] : peers_) {
      peer->last_frame += kFramesOfABroker;
      peer->answers.clear();
    }
    away_ = false;
    takes_packets_ = options_.takes_packets && takes_packets;
  }
  StartServer();
}

FakeBroker::~FakeBroker() {
  std::vector<std::thread> connections;
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    for (const auto& [token, peer] : peers_) {
      shutdown(peer->socket.fd(), SHUT_RDWR);
      if (peer->stream.has_value()) peer->stream->end();
    }
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
  bool takes_packets = false;
  {
    base::MutexLock lock(&mu_);
    takes_packets = takes_packets_;
  }
  frame.mutable_challenge()->set_takes_streams(takes_packets);
  if (!socket.Send(frame.SerializeAsString(), {}, false, kPatience).ok())
    return nullptr;
  auto packet = socket.Receive(kPatience);
  v1::ClientFrame first;
  if (!packet.ok() || !first.ParseFromString(packet->bytes) ||
      !packet->credentials.has_value()) {
    return nullptr;
  }
  if (first.has_open_stream() && takes_packets) {
    SessionByPackets(std::move(socket), first.open_stream().token());
    return nullptr;
  }
  if (!first.has_hello()) {
    *frame.mutable_refused() = proto::ToWireError(proto::MakeError(
        v1::BAD_REQUEST, "the first frame of a client is a Hello"));
    socket.Send(frame.SerializeAsString(), {}, false, kPatience).IgnoreError();
    return nullptr;
  }
  if (first.hello().nonce() != frame.challenge().nonce()) return nullptr;
  return Welcome(std::move(socket), first.hello());
}

std::shared_ptr<FakeBroker::Peer> FakeBroker::Welcome(
    ipc::SeqpacketSocket socket, const v1::Hello& hello) {
  v1::BrokerFrame frame;
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
    welcome.set_tenant(hello.tenant_token().empty() ? "fake"
                                                    : hello.tenant_token());
    welcome.set_broker_version("fake of " + hello.program());
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
  if (peer->stream.has_value()) peer->stream->end();
  changed_.NotifyAll();
}

absl::StatusOr<std::shared_ptr<FakeBroker::Peer>> FakeBroker::BeginStream(
    const std::string& token, Stream stream) {
  base::MutexLock lock(&mu_);
  if (away_ || stopping_) {
    ++turned_away_;
    changed_.NotifyAll();
    return absl::UnavailableError("nobody is here");
  }
  ++streams_;
  changed_.NotifyAll();
  if (!refuse_.ok()) return proto::FromGrpcStatus(refuse_);
  const auto found = peers_.find(token);
  if (found == peers_.end())
    return proto::MakeError(v1::NO_SESSION, "unknown token: greet again");
  found->second->stream = std::move(stream);
  return found->second;
}

void FakeBroker::EndStream(Peer* peer, const void* stream) {
  serving.reset();
  base::MutexLock lock(&mu_);
  if (peer->stream.has_value() && peer->stream->name == stream)
    peer->stream.reset();
}

void FakeBroker::Hear(const v1::ClientMessage& message) {
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

grpc::Status FakeBroker::Session(
    grpc::ServerContext* context,
    grpc::ServerReaderWriter<v1::BrokerMessage, v1::ClientMessage>* stream) {
  const auto token = context->client_metadata().find("gmb-session-bin");
  const auto peer =
      BeginStream(token == context->client_metadata().end()
                      ? ""
                      : std::string(token->second.data(), token->second.size()),
                  {.name = stream,
                   .write =
                       [stream](const v1::BrokerMessage& message) {
                         stream->Write(message);
                       },
                   .end = [context] { context->TryCancel(); }});
  if (!peer.ok()) return proto::ToGrpcStatus(peer.status());
  serving = *peer;
  v1::ClientMessage message;
  while (stream->Read(&message)) Hear(message);
  EndStream(peer->get(), stream);
  return grpc::Status::OK;
}

void FakeBroker::SessionByPackets(ipc::SeqpacketSocket socket,
                                  const std::string& token) {
  const auto peer = BeginStream(
      token, {.name = &socket,
              .write =
                  [&socket](const v1::BrokerMessage& message) {
                    v1::BrokerFrame frame;
                    *frame.mutable_message() = message;
                    socket.Send(frame.SerializeAsString(), {}, false, kPatience)
                        .IgnoreError();
                  },
              .end = [&socket] { socket.Shutdown(); }});
  if (!peer.ok()) {
    v1::BrokerFrame end;
    *end.mutable_stream_ended() = proto::ToWireError(peer.status());
    socket.Send(end.SerializeAsString(), {}, false, kPatience).IgnoreError();
    return;
  }
  ++packet_streams_;
  serving = *peer;
  for (;;) {
    const auto packet = socket.Receive(absl::InfiniteDuration());
    v1::ClientFrame frame;
    if (!packet.ok() || !frame.ParseFromString(packet->bytes)) break;
    Hear(frame.message());
  }
  EndStream(peer->get(), &socket);
}

std::shared_ptr<FakeBroker::Peer> FakeBroker::current() const {
  if (serving != nullptr) return std::static_pointer_cast<Peer>(serving);
  base::MutexLock lock(&mu_);
  return current_;
}

}  // namespace gmb::test
