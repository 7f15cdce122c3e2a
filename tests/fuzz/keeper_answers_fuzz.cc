// The answers of a keeper, read by the broker that takes over: all that is
// believed adds up, and no fd is left over.
#include <linux/kcmp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "broker/keeping/fetched.h"
#include "keeper/link/keeper_link.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/scripted_peer.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using keeper::Encode;
using keeper::EntryHead;
using keeper::Frame;
using keeper::Kind;

// A value that was read is written as it was; `whole`: to the last byte.
template <typename Value>
void CheckAgain(const absl::StatusOr<Value>& value, const std::string& body,
                std::string (*encode)(const Value&), bool whole = true) {
  if (!value.ok()) return;
  const std::string again = encode(*value);
  Require(whole ? again == body : body.compare(0, again.size(), again) == 0,
          "what was read is written as it was");
}

void CheckBody(const std::string& body) {
  CheckAgain<keeper::Hello>(keeper::DecodeHello(body), body, Encode, false);
  CheckAgain<keeper::Welcome>(keeper::DecodeWelcome(body), body, Encode);
  CheckAgain<EntryHead>(keeper::DecodeEntry(body), body, Encode);
  CheckAgain<keeper::Page>(keeper::DecodePage(body), body, Encode);
  CheckAgain<keeper::KeptCount>(keeper::DecodeCount(body), body, Encode);
  CheckAgain<keeper::Estate>(keeper::DecodeEstate(body), body, Encode, false);
  const auto status = keeper::DecodeStatus(body);
  Require(!status.ok() || keeper::DecodeStatus(Encode(*status)).ok(),
          "a status can be written again");
  const auto key = keeper::DecodeKey(body);
  Require(!key.ok() || keeper::IsKey(*key), "a name is one");
  (void)keeper::DecodeHandOver(body);
  (void)keeper::DecodeAfter(body);
  Require(!keeper::DecodeRefusal(body).ok(), "a refusal is an error");
}

std::string SomePage(Input* input, uint64_t* order, size_t* fds) {
  keeper::Page page;
  const uint8_t odd = input->Byte();
  page.more = (odd & 1) != 0;
  const size_t entries = input->Below(5);
  for (size_t i = 0; i < entries; ++i) {
    EntryHead head;
    head.order = *order += input->Below(4) == 0 ? 0 : 1 + input->Byte();
    head.key = std::string("slab/") + static_cast<char>('0' + input->Below(9));
    head.record = input->ShortText();
    head.fds = static_cast<uint8_t>(1 + input->Below(4));
    *fds += head.fds;
    page.entries.push_back(std::move(head));
  }
  std::string body = Encode(page);
  if ((odd & 2) != 0) body[input->Number<uint16_t>() % body.size()] ^= 4;
  if ((odd & 4) != 0) *fds = input->Below(20);
  return body;
}

// Its greeting, and its answers to one Fetch after the other.
std::vector<ScriptedPeer::Packet> SomeScript(Input* input) {
  const uint8_t odd = input->Byte();
  std::vector<ScriptedPeer::Packet> script;
  script.push_back({Encode(
      Frame{Kind::kChallenge, 0, std::string(keeper::kNonceBytes, 'n')})});
  if ((odd & 1) != 0)
    script.push_back({Encode(Frame{
        Kind::kWait, 1, keeper::EncodeRefusal(absl::AbortedError("wait"))})});
  script.push_back({Encode(
      Frame{Kind::kWelcome, 1,
            Encode(keeper::Welcome{keeper::kNewestVersion,
                                   std::string(keeper::kKeeperIdBytes, 'k'),
                                   input->Below(12), 0})})});
  if ((odd & 6) == 6) script[input->Below(script.size())].bytes = input->Text();
  uint64_t order = 0;
  for (uint32_t call = 2; !input->empty() && script.size() < 12; ++call) {
    ScriptedPeer::Packet packet;
    const uint8_t kind = input->Byte();
    if ((kind & 3) == 0) {
      packet = {input->Text(), input->Below(4)};
    } else if ((kind & 31) == 1) {
      packet = {
          Encode(Frame{static_cast<Kind>(input->Byte()), call, input->Text()})};
    } else {
      std::string body = SomePage(input, &order, &packet.fds);
      packet.bytes = Encode(Frame{Kind::kPage, call, std::move(body)});
      packet.same_fd = (kind & 0xe0) == 0xe0;
    }
    if (packet.bytes.empty()) packet.bytes = "?";
    script.push_back(std::move(packet));
  }
  return script;
}

bool KernelTellsFilesApart() {
  const pid_t self = ::getpid();
  return ::syscall(SYS_kcmp, self, self, KCMP_FILE, 0, 0) == 0;
}

void CheckFetched(const std::vector<broker::Kept>& all,
                  const keeper::Welcome& welcome, bool same_fd) {
  std::map<std::string, int> keys;
  size_t fds = 0;
  for (const broker::Kept& kept : all) {
    Require(keeper::IsKey(kept.key) && ++keys[kept.key] == 1,
            "a name comes once");
    Require(kept.record.size() <= keeper::kMaxRecordBytes &&
                !kept.fds.empty() && kept.fds.size() <= keeper::kMaxEntryFds,
            "an entry is bounded");
    Require(!kept.peer.has_value() || *kept.peer < kept.fds.size(),
            "a peer is one of the fds");
    for (const broker::SharedFd& fd : kept.fds) {
      Require(fd->valid(), "what came is open");
      ++fds;
    }
  }
  Require(all.size() == welcome.entries, "as many came as were promised");
  if (!same_fd || fds < 2 || !KernelTellsFilesApart()) return;
  Require(!broker::CheckDistinct(all).ok(), "one open file is not two");
}

}  // namespace

void FuzzKeeperAnswers(Bytes bytes) {
  static ScriptedPeer peer;
  Input input(bytes);
  if (input.Below(4) == 0) {
    const std::string packet = input.Rest();
    const auto frame = keeper::Decode(packet);
    if (frame.ok())
      Require(Encode(*frame) == packet, "a frame is written as it was");
    return CheckBody(packet);
  }
  const std::vector<ScriptedPeer::Packet> script = SomeScript(&input);
  bool all_same = script.size() > 1;
  for (const auto& packet : script)
    all_same = all_same && (packet.fds == 0 || packet.same_fd);
  const int free_before = LowestFreeFd();
  peer.Play(script, [&] {
    auto link =
        keeper::KeeperLink::Connect({.socket = peer.path(),
                                     .timeout = absl::Seconds(60),
                                     .wait_for_last = absl::Seconds(60)});
    if (!link.ok()) return;
    const auto all = broker::FetchAll(
        &*link, [](base::UniqueFd fd) { return broker::Share(std::move(fd)); });
    if (all.ok()) CheckFetched(*all, link->welcome(), all_same);
    Require(all.ok() || !all.status().message().empty(), "a refusal says why");
  });
  Require(LowestFreeFd() == free_before, "no fd is left open");
}

}  // namespace gmb::fuzz
