// The messages of a broker, on the handle socket and on a stream of packets,
// read by a client that does not trust it: what it is handed fits together, and
// no fd is left over.
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/lease/move_table.h"
#include "client/session/greeting.h"
#include "client/session/handle_channel.h"
#include "client/session/packet_stream.h"
#include "client/session/request_table.h"
#include "client/session/session_wait.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scripted_peer.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using internal::Granted;
using internal::RequestTable;

void FuzzGreet(Input* input) {
  static ScriptedPeer peer;
  static const base::UniqueFd page = *ipc::CreateGatePage();
  v1::BrokerFrame frame;
  const uint8_t odd = input->Byte();
  std::vector<ScriptedPeer::Packet> script;
  frame.mutable_challenge()->set_nonce(std::string(16, 'n'));
  frame.mutable_challenge()->set_protocol_version(1);
  script.push_back({frame.SerializeAsString()});
  v1::Welcome* const welcome = frame.mutable_welcome();
  welcome->set_session_id(input->Byte());
  welcome->set_token(std::string(16 + (odd & 1), 't'));
  welcome->set_gate_layout((odd >> 1) & 3);
  script.push_back({frame.SerializeAsString(), size_t{odd >= 128U}});
  if ((odd & 8) != 0) script[1].extra = page.get();
  if ((odd & 16) != 0) script[0].bytes += input->ShortText();
  if ((odd & 32) != 0) script[1].bytes += input->ShortText();
  if ((odd & 64) != 0) script[odd & 1] = {input->ShortText() + "?"};
  peer.Play(script, [&] {
    const auto greeting =
        internal::Greet(peer.path(), "fuzz", "", absl::Seconds(60));
    if (!greeting.ok())
      return Require(!greeting.status().message().empty(), "it says why");
    Require(greeting->welcome.session_id() != 0 &&
                greeting->welcome.token().size() == 16,
            "a session has an id and a token");
    Require(
        greeting->gate.has_value() == (greeting->welcome.gate_layout() == 1),
        "a gate is of the layout that was said");
  });
}

// One end is the broker's, and is kept; the other one is the client's.
ipc::SeqpacketSocket Connect(std::optional<ipc::SeqpacketSocket>* broker) {
  std::array<int, 2> pair{};
  Require(
      ::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair.data()) == 0,
      "there are sockets");
  broker->emplace(base::UniqueFd(pair[0]));
  return ipc::SeqpacketSocket(base::UniqueFd(pair[1]));
}

void Drain(ipc::SeqpacketSocket* socket) {
  while (true) {
    const auto packet = socket->TryReceive();
    if (!packet.ok() || !packet->has_value()) return;
  }
}

// A session's books, without its threads.
class FrameRun final : public internal::SlabSink, public internal::StreamOwner {
 public:
  explicit FrameRun(Input* input) : input_(*input) {
    channel_.emplace(Connect(&broker_), this);
    OpenStream();
  }

  void Go() {
    bool goes_on = true;
    while (goes_on && !input_.empty()) {
      goes_on = Step();
      TakeAll();
    }
    if (!goes_on) channel_->Drain();
    stream_->Cancel();
    stream_->Receive(/*reader=*/0);
    Require(ended_, "a stream ends that is cancelled");
  }

  std::optional<v1::ClientMessage> NextToWrite() override {
    const v1::ClientMessage* const next = requests_.NextToWrite();
    if (next == nullptr) return std::nullopt;
    Require(next->kind_case() != v1::ClientMessage::KIND_NOT_SET,
            "what is written says something");
    return *next;
  }
  void OnMessage(v1::BrokerMessage message, uint64_t /*reader*/) override {
    Require(!ended_, "nothing comes after the end");
    sound_ = Take(std::move(message)) && sound_;
  }
  void OnStreamEnded(absl::Status /*why*/) override {
    Require(!ended_, "a stream ends once");
    ended_ = true;
  }

  absl::Status OnSlabs(const v1::Slabs& slabs, std::vector<base::UniqueFd> fds,
                       uint64_t /*reader*/) override {
    if (slabs.move() > 0) return moves_.OnSlabs(slabs, std::move(fds));
    v1::Slabs told_apart = slabs;
    for (std::string& handle : *told_apart.mutable_ipc_handles()) {
      const std::string number =
          absl::StrCat(absl::Dec(++last_handle_, absl::kZeroPad16));
      if (handle.size() > number.size())
        handle.replace(0, number.size(), number);
    }
    return requests_.OnSlabs(told_apart, std::move(fds));
  }

 private:
  // False: the session would end.
  bool Step() {
    switch (input_.Below(8)) {
      case 0:
        return Receive(SomeFrame());
      case 1:
        return Receive({input_.ShortText(), input_.Below(3)});
      case 2:
        Ask();
        return true;
      case 3:
        if (last_id_ > 0) requests_.Abandon(1 + input_.Below(last_id_));
        return true;
      case 4:
        requests_.Rewind();
        return true;
      case 5:
        return ReceiveOnStream(MessageFrame(SomeGrant()));
      default: {
        const std::string text = input_.ShortText();
        v1::BrokerMessage message;
        return ReceiveOnStream(message.ParseFromString(text)
                                   ? MessageFrame(std::move(message))
                                   : text);
      }
    }
  }
  void Ask() {
    v1::ClientMessage message;
    if (!message.ParseFromString(input_.ShortText())) return;
    if (message.kind_case() == v1::ClientMessage::KIND_NOT_SET)
      message.mutable_acquire()->set_bytes(input_.Byte());
    message.clear_request_id();
    last_id_ = requests_.AddRequest(std::move(message));
  }
  // As the channel does: a stream that is over is followed by another.
  void OpenStream() {
    ended_ = false;
    StreamOwner* const owner = this;
    stream_.emplace(Connect(&stream_broker_), "token", owner, &wait_);
    requests_.Rewind();
    stream_->Start();
  }
  static std::string MessageFrame(v1::BrokerMessage message) {
    v1::BrokerFrame frame;
    *frame.mutable_message() = std::move(message);
    return frame.SerializeAsString();
  }
  // False: the session would end.
  bool ReceiveOnStream(const std::string& frame) {
    ScriptedPeer::Say(&*stream_broker_,
                      {{frame.empty() ? "?" : frame, frame.size() % 5 == 4}});
    stream_->Receive(/*reader=*/0);
    if (ended_) OpenStream();
    return sound_;
  }
  // Of the last request, or of a move, and most often sound.
  ScriptedPeer::Packet SomeFrame() {
    v1::BrokerFrame frame;
    v1::Slabs* const slabs = frame.mutable_slabs();
    const uint8_t odd = input_.Byte();
    slabs->set_frame_id(++last_frame_ - ((odd & 7) == 7 ? 1 : 0));
    slabs->set_request_id((odd & 8) != 0 ? 0 : last_id_);
    slabs->set_move((odd & 8) != 0 ? input_.Byte() : 0);
    slabs->set_lease_id(1 + (odd & 16));
    slabs->set_slabs_in_lease(static_cast<uint32_t>(input_.Below(6)));
    slabs->set_first_slab(static_cast<uint32_t>(input_.Below(6)));
    const size_t count = input_.Below(4);
    for (size_t i = 0; i < count; ++i)
      slabs->add_slab_bytes((odd & 32) != 0 ? input_.Number<uint64_t>() : 4096);
    if ((odd & 64) == 0) return {frame.SerializeAsString(), count};
    for (size_t i = 0; i < count; ++i)
      slabs->add_ipc_handles(std::string(input_.Below(3) == 0 ? 63 : 64, 'h'));
    return {frame.SerializeAsString(), size_t{odd >= 128U}};
  }
  v1::BrokerMessage SomeGrant() {
    v1::BrokerMessage message;
    const uint8_t odd = input_.Byte();
    message.set_request_id(last_id_ + ((odd & 7) == 7 ? 1 : 0));
    message.mutable_grant()->set_lease_id(1 + (odd & 16));
    message.mutable_grant()->set_slabs(static_cast<uint32_t>(input_.Below(6)));
    message.mutable_grant()->set_bytes(4096 * input_.Below(6));
    return message;
  }

  bool Receive(ScriptedPeer::Packet packet) {
    if (packet.bytes.empty()) packet.bytes = "?";
    ScriptedPeer::Say(&*broker_, {packet});
    const absl::Status received = channel_->Receive(/*reader=*/0);
    Drain(&*broker_);
    return received.ok();
  }
  bool Take(v1::BrokerMessage message) {
    if (message.has_evict()) return moves_.OnEvict(message.evict()).ok();
    if (message.has_map()) return moves_.OnMap(message.map()).ok();
    if (message.request_id() == 0) return true;
    return requests_.OnMessage(std::move(message)).ok();
  }

  void TakeAll() {
    Drain(&*stream_broker_);
    stream_->Receive(/*reader=*/0);  // writes what there was no room for
    stream_->Poke();
    Require(!moves_.has_task(), "nothing moves that is not mapped");
    for (uint64_t id = 1; id <= last_id_; ++id) {
      (void)requests_.TakeAhead(id);
      if ((id & 1) != 0) {
        if (const auto early = requests_.TakeSlabs(id)) {
          CheckHandles(early->handles, early->slab_bytes);
          early_[id] = early->slab_bytes;
        }
      }
      auto answer = requests_.TakeAnswer(id);
      if (!answer.has_value() || !answer->ok()) continue;
      if (auto* granted = std::get_if<Granted>(&**answer))
        CheckGranted(id, *granted);
    }
  }
  void CheckGranted(uint64_t id, Granted& granted) {
    const std::vector<uint64_t>& sizes = granted.slabs.slab_bytes();
    // Others' may have been taken before, of a lease that was never granted.
    if (const auto handles = granted.slabs.TakeHandles(); !handles.empty()) {
      CheckHandles(handles, sizes);
    } else {
      Require(early_[id] == sizes, "no handles are lost");
    }
    if (!granted.grant.export_key().empty()) return;
    uint64_t sum = 0;
    for (const uint64_t bytes : sizes) {
      Require(bytes > 0, "a slab has bytes");
      sum += bytes;
    }
    Require(
        sum == granted.grant.bytes() && sizes.size() == granted.grant.slabs(),
        "a lease has the slabs that were announced");
  }
  void CheckHandles(const std::vector<device::ShareableHandle>& handles,
                    const std::vector<uint64_t>& sizes) {
    Require(handles.size() == sizes.size(), "each slab has a handle");
    for (const device::ShareableHandle& handle : handles) {
      if (const auto* ipc = std::get_if<device::IpcHandle>(&handle))
        Require(handed_out_.insert(*ipc).second, "handles are handed out once");
    }
  }

  Input& input_;
  RequestTable requests_;
  internal::MoveTable moves_;
  std::optional<ipc::SeqpacketSocket> broker_;
  internal::SessionWait wait_ = *internal::SessionWait::Create();
  std::optional<internal::HandleChannel> channel_;
  std::optional<ipc::SeqpacketSocket> stream_broker_;
  std::optional<internal::PacketStream> stream_;
  bool ended_ = false;
  bool sound_ = true;  // all messages so far
  uint64_t last_id_ = 0;
  uint64_t last_frame_ = 0;
  uint64_t last_handle_ = 0;
  std::map<uint64_t, std::vector<uint64_t>> early_;  // sizes, by request
  std::set<device::IpcHandle> handed_out_;
};

}  // namespace

void FuzzFrames(Bytes bytes) {
  Input input(bytes);
  const bool greets = input.Below(4) == 0;
  if (greets) {
    FuzzGreet(&input);
    return;
  }
  const int free_before = LowestFreeFd();
  FrameRun(&input).Go();
  Require(LowestFreeFd() == free_before, "no fd is left open");
}

}  // namespace gmb::fuzz
