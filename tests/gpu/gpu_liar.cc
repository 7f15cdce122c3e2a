#include <fcntl.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lease/mapper_cache.h"
#include "client/lease/slab_set.h"
#include "client/session/greeting.h"
#include "client/session/socket_dir.h"
#include "client/wire.h"
#include "device/mapper.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "proto/amount_text.h"
#include "proto/error_status.h"

// A client that says "released" and keeps its mapping, or its fds. It speaks
// the raw protocol, since the library would not do that. For every line on
// standard input it reads all the bytes that it kept and says "own" when they
// are what it wrote; it ends with the input.
namespace gmb {
namespace {

constexpr uint8_t kMark = 0x5A;
constexpr uint64_t kChunkBytes = uint64_t{16} << 20;
constexpr absl::Duration kPatience = absl::Seconds(10);

void Say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

std::vector<device::ShareableHandle> Duplicate(
    const std::vector<device::ShareableHandle>& handles) {
  std::vector<device::ShareableHandle> copies;
  for (const device::ShareableHandle& handle : handles) {
    if (const auto* fd = std::get_if<base::UniqueFd>(&handle)) {
      copies.emplace_back(base::UniqueFd(fcntl(fd->get(), F_DUPFD_CLOEXEC, 3)));
    } else {
      copies.push_back(std::get<device::IpcHandle>(handle));
    }
  }
  return copies;
}

class Liar {
 public:
  absl::Status Connect(const std::string& dir);
  absl::Status Lease(uint64_t bytes);
  absl::Status Lie(bool keep_mapping);
  // DATA_LOSS when what was kept is not what was written.
  absl::Status ReadAll();
  [[nodiscard]] uint64_t bytes() const { return bytes_; }

 private:
  absl::StatusOr<v1::BrokerMessage> Answer(uint64_t request_id);
  absl::Status ReceiveSlabs();
  absl::StatusOr<std::unique_ptr<device::MappedRange>> Map();

  std::optional<internal::SocketDir> dir_;
  std::optional<internal::Greeting> greeting_;
  std::unique_ptr<v1::SessionService::Stub> stub_;
  grpc::ClientContext context_;
  std::unique_ptr<
      grpc::ClientReaderWriter<v1::ClientMessage, v1::BrokerMessage>>
      stream_;
  internal::MapperCache mappers_;
  std::shared_ptr<device::Mapper> mapper_;
  internal::SlabSet slabs_;
  std::vector<device::ShareableHandle> kept_;
  std::unique_ptr<device::MappedRange> range_;  // null: only fds are kept
  uint64_t lease_id_ = 0;
  uint64_t bytes_ = 0;
};

absl::Status Liar::Connect(const std::string& dir) {
  absl::StatusOr<internal::SocketDir> opened = internal::SocketDir::Open(dir);
  if (!opened.ok()) return opened.status();
  dir_.emplace(*std::move(opened));
  absl::StatusOr<internal::Greeting> greeting =
      internal::Greet(dir_->handle_path(), "gpu_liar", "", kPatience);
  if (!greeting.ok()) return greeting.status();
  greeting_.emplace(*std::move(greeting));
  stub_ = v1::SessionService::NewStub(grpc::CreateChannel(
      dir_->grpc_target(), grpc::InsecureChannelCredentials()));
  context_.AddMetadata("gmb-session-bin", greeting_->welcome.token());
  stream_ = stub_->Session(&context_);
  auto mapper =
      mappers_.Get(greeting_->welcome, greeting_->welcome.devices(0).uuid());
  if (!mapper.ok()) return mapper.status();
  mapper_ = *std::move(mapper);
  return absl::OkStatus();
}

absl::StatusOr<v1::BrokerMessage> Liar::Answer(uint64_t request_id) {
  v1::BrokerMessage message;
  while (stream_->Read(&message)) {
    if (message.request_id() != request_id || message.has_waiting()) continue;
    if (message.has_error()) return proto::FromWireError(message.error());
    return message;
  }
  return proto::FromGrpcStatus(stream_->Finish());
}

absl::Status Liar::ReceiveSlabs() {
  while (!slabs_.complete()) {
    absl::StatusOr<ipc::Packet> packet = greeting_->socket.Receive(kPatience);
    if (!packet.ok()) return packet.status();
    v1::BrokerFrame frame;
    if (!frame.ParseFromString(packet->bytes) || !frame.has_slabs())
      return absl::InternalError("an unexpected frame");
    absl::Status added =
        internal::SlabSet::CheckFrame(frame.slabs(), packet->fds.size());
    if (added.ok()) added = slabs_.Add(frame.slabs(), std::move(packet->fds));
    if (!added.ok()) return added;
    v1::ClientFrame ack;
    ack.mutable_slabs_ack()->set_frame_id(frame.slabs().frame_id());
    if (absl::Status sent = greeting_->socket.Send(ack.SerializeAsString(), {},
                                                   false, kPatience);
        !sent.ok()) {
      return sent;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<device::MappedRange>> Liar::Map() {
  auto range = mapper_->Reserve(bytes_, {}, device::Protection::kReadWrite);
  if (!range.ok()) return range.status();
  if (absl::Status mapped =
          (*range)->Map(Duplicate(kept_), slabs_.slab_bytes());
      !mapped.ok()) {
    return mapped;
  }
  return range;
}

absl::Status Liar::Lease(uint64_t bytes) {
  v1::ClientMessage acquire;
  acquire.set_request_id(1);
  acquire.mutable_acquire()->set_bytes(bytes);
  if (!stream_->Write(acquire)) return absl::UnavailableError("no stream");
  if (absl::Status received = ReceiveSlabs(); !received.ok()) return received;
  const absl::StatusOr<v1::BrokerMessage> grant = Answer(1);
  if (!grant.ok()) return grant.status();
  lease_id_ = grant->grant().lease_id();
  bytes_ = grant->grant().bytes();
  kept_ = slabs_.TakeHandles();
  auto range = Map();
  if (!range.ok()) return range.status();
  range_ = *std::move(range);
  v1::ClientMessage mapped;
  mapped.mutable_mapped()->set_lease_id(lease_id_);
  if (!stream_->Write(mapped)) return absl::UnavailableError("no stream");
  return mapper_->Fill(range_->data(), kMark, bytes_);
}

absl::Status Liar::Lie(bool keep_mapping) {
  if (keep_mapping) {
    kept_.clear();
  } else {
    range_.reset();
  }
  v1::ClientMessage release;
  release.set_request_id(2);
  release.mutable_release()->set_lease_id(lease_id_);
  if (!stream_->Write(release)) return absl::UnavailableError("no stream");
  return Answer(2).status();
}

absl::Status Liar::ReadAll() {
  std::unique_ptr<device::MappedRange> again;
  if (range_ == nullptr) {
    auto mapped = Map();
    if (!mapped.ok()) return mapped.status();
    again = *std::move(mapped);
  }
  const char* const data =
      static_cast<const char*>((range_ == nullptr ? again : range_)->data());
  const std::vector<uint8_t> expected(kChunkBytes, kMark);
  std::vector<uint8_t> found(kChunkBytes);
  for (uint64_t offset = 0; offset < bytes_; offset += kChunkBytes) {
    const uint64_t bytes = std::min(kChunkBytes, bytes_ - offset);
    if (absl::Status copied =
            mapper_->CopyToHost(found.data(), data + offset, bytes);
        !copied.ok()) {
      return copied;
    }
    if (std::memcmp(found.data(), expected.data(), bytes) != 0)
      return absl::DataLossError(absl::StrCat("other bytes at ", offset));
  }
  return absl::OkStatus();
}

absl::Status Run(const std::string& dir, const std::string& size,
                 bool keep_mapping) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(size);
  if (!bytes.ok()) return bytes.status();
  Liar liar;
  absl::Status status = liar.Connect(dir);
  if (status.ok()) status = liar.Lease(*bytes);
  if (status.ok()) status = liar.Lie(keep_mapping);
  if (!status.ok()) return status;
  Say(absl::StrCat("lied ", liar.bytes()));
  for (std::string line; std::getline(std::cin, line);) {
    if (absl::Status read = liar.ReadAll(); !read.ok()) return read;
    Say("own");
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gmb

int main(int argc, char** argv) {
  const std::string keep = argc == 4 ? argv[3] : "";
  if (keep != "mapping" && keep != "fd") {
    std::fprintf(stderr, "usage: gpu_liar SOCKET_DIR BYTES mapping|fd\n");
    return 2;
  }
  const absl::Status status = gmb::Run(argv[1], argv[2], keep == "mapping");
  if (status.ok()) return 0;
  gmb::Say(status.ToString());
  return 1;
}
