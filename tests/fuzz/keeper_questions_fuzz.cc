// The questions of a broker or a command to its keeper, in frames of any kind:
// a frame that is refused, or ends the connection, changes nothing that is
// kept.
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "ipc/seqpacket.h"
#include "keeper/server.h"
#include "keeper/wire/frame.h"
#include "keeper/wire/messages.h"
#include "tests/broker/temp_directory.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using keeper::Decode;
using keeper::Encode;
using keeper::EntryHead;
using keeper::Frame;
using keeper::Kind;
using keeper::Role;

constexpr absl::Duration kKeeperPatience = absl::Seconds(60);
constexpr size_t kMostEntries = 6;
constexpr size_t kMostFds = 20;
const char* const kKeys[] = {"slab/1", "slab/2", "journal/1", "a", "b",
                             "c",      "d",      "e",         ""};

// A keeper in this process, for all inputs.
class LivingKeeper {
 public:
  LivingKeeper()
      : stop_(::eventfd(0, EFD_CLOEXEC)),
        server_(keeper::Server::Start(
                    keeper::KeeperPlace::Open(path(), /*make=*/false).value(),
                    {.limits = {kMostEntries, kMostFds}}, stop_.get())
                    .value()),
        thread_([this] { (void)server_->Run(); }) {}
  ~LivingKeeper() {
    (void)::eventfd_write(stop_.get(), 1);
    thread_.join();
  }
  LivingKeeper(const LivingKeeper&) = delete;
  LivingKeeper& operator=(const LivingKeeper&) = delete;

  [[nodiscard]] std::string path() const { return directory_ / "keeper"; }

 private:
  const broker::TempDirectory directory_;
  const base::UniqueFd stop_;
  const std::unique_ptr<keeper::Server> server_;
  std::thread thread_;
};

using KeptHeads = std::vector<EntryHead>;  // in the order of their Puts

// A process that asks, and what the keeper has by all that it has answered.
class Asker {
 public:
  Asker(const std::string& path, KeptHeads* kept)
      : socket_(ipc::SeqpacketSocket::Connect(path, kKeeperPatience).value()),
        kept_(*kept) {
    const ipc::Packet packet = Await().value();
    challenge_ = Decode(packet.bytes).value();
    Require(challenge_.kind == Kind::kChallenge, "a keeper greets");
  }

  [[nodiscard]] std::string HelloFrame(Role role, bool wait) const {
    return Encode(Frame{
        Kind::kHello, 1,
        Encode(keeper::Hello{keeper::kOldestVersion, keeper::kNewestVersion,
                             role, wait, challenge_.body})});
  }
  // False: it is not served.
  bool Greet(const std::string& hello) {
    if (!socket_.Send(hello, {}, true, kKeeperPatience).ok()) return false;
    auto answer = Await();
    if (answer.ok() && Decode(answer->bytes)->kind == Kind::kWait)
      answer = Await();
    if (!answer.ok()) return false;
    const auto frame = Decode(answer->bytes);
    if (frame->kind != Kind::kWelcome) return false;
    const auto welcome = keeper::DecodeWelcome(frame->body);
    Require(welcome.ok() && welcome->entries == kept_.size(),
            "a welcome says how much is kept");
    return true;
  }
  // False: the connection has ended.
  bool Ask(const std::string& question, const std::vector<int>& fds) {
    if (!socket_.Send(question, fds, false, kKeeperPatience).ok()) return false;
    const auto packet = Await();
    if (!packet.ok()) return false;
    const auto answer = Decode(packet->bytes);
    const auto asked = Decode(question);
    Require(answer.ok(), "an answer is a frame");
    Require(asked.ok() && answer->call == asked->call,
            "what is no question is not answered");
    OnAnswer(*asked, fds.size(), *answer, packet->fds.size());
    return true;
  }
  // All that is kept is what has been answered to be; it fits into a page.
  void CheckAll() {
    const std::string fetch =
        Encode(Frame{Kind::kFetch, 7, keeper::EncodeAfter(0)});
    Require(socket_.Send(fetch, {}, false, kKeeperPatience).ok(),
            "a broker may fetch");
    const ipc::Packet packet = Await().value();
    const keeper::Page page =
        keeper::DecodePage(Decode(packet.bytes)->body).value();
    Require(page.entries.size() == kept_.size() && !page.more,
            "all that was put is kept, and nothing else");
    for (size_t i = 0; i < kept_.size(); ++i) {
      const EntryHead& is = page.entries[i];
      Require(is.key == kept_[i].key && is.record == kept_[i].record &&
                  is.fds == kept_[i].fds && is.peer == kept_[i].peer,
              "what is kept is what was put");
    }
    Require(packet.fds.size() == KeptFds(), "it has the fds of its entries");
  }

 private:
  absl::StatusOr<ipc::Packet> Await() {
    return socket_.Receive(kKeeperPatience);
  }
  void OnAnswer(const Frame& asked, size_t fds, const Frame& answer,
                size_t answered_fds) {
    if (answer.kind == Kind::kRefused) {
      Require(!keeper::DecodeRefusal(answer.body).ok(), "a refusal says why");
      return;
    }
    switch (asked.kind) {
      case Kind::kPut:
        return OnPut(keeper::DecodeEntry(asked.body), fds);
      case Kind::kRemove:
        return OnRemoved(keeper::DecodeKey(asked.body).value());
      case Kind::kDone:
      case Kind::kDrop:
        return kept_.clear();
      case Kind::kStatus: {
        const auto status = keeper::DecodeStatus(answer.body);
        Require(status.ok() && status->entries == kept_.size() &&
                    status->fds == KeptFds(),
                "a status counts what is kept");
        return;
      }
      case Kind::kCount:
        return Require(keeper::DecodeCount(answer.body).ok(), "a count is one");
      case Kind::kLook:
        return Require(answered_fds == 1, "a look has the journal");
      case Kind::kFetch:
        return Require(keeper::DecodePage(answer.body).ok(), "a page is one");
      default:
        Require(false, "only questions are answered");
    }
  }
  void OnPut(const absl::StatusOr<EntryHead>& head, size_t fds) {
    Require(head.ok() && head->fds == fds, "what is damaged is not kept");
    Require(Find(head->key) == kept_.end(), "a name is kept once");
    kept_.push_back(*head);
    Require(kept_.size() <= kMostEntries && KeptFds() <= kMostFds,
            "a keeper keeps no more than it may");
  }
  void OnRemoved(const std::string& key) {
    const auto at = Find(key);
    Require(at != kept_.end(), "only what is kept can be removed");
    kept_.erase(at);
  }
  [[nodiscard]] KeptHeads::iterator Find(const std::string& key) {
    return std::find_if(kept_.begin(), kept_.end(),
                        [&](const EntryHead& head) { return head.key == key; });
  }
  [[nodiscard]] size_t KeptFds() const {
    size_t fds = 0;
    for (const EntryHead& head : kept_) fds += head.fds;
    return fds;
  }

  ipc::SeqpacketSocket socket_;
  Frame challenge_;
  KeptHeads& kept_;
};

std::string PutFrame(Input* input, size_t* fds) {
  EntryHead head{.key = kKeys[input->Below(std::size(kKeys))],
                 .record = input->ShortText(),
                 .fds = static_cast<uint8_t>(input->Below(10))};
  *fds = head.fds;
  const uint8_t odd = input->Byte();
  if ((odd & 1) != 0) head.peer = static_cast<uint8_t>(odd >> 5);
  if ((odd & 2) != 0) *fds = input->Below(12);
  std::string body = Encode(head);
  if ((odd & 4) != 0) body[input->Below(body.size())] ^= 1;
  if ((odd & 8) != 0) body += '.';
  return Encode(Frame{Kind::kPut, 3, std::move(body)});
}

std::string QuestionOf(Input* input, size_t* fds) {
  *fds = 0;
  switch (input->Below(8)) {
    case 0: {
      *fds = input->Below(3);
      return input->ShortText();
    }
    case 1: {
      const auto kind = static_cast<Kind>(input->Byte());
      const uint32_t call = input->Byte();
      return Encode(Frame{kind, call, input->ShortText()});
    }
    case 2:
      return Encode(
          Frame{Kind::kRemove, 4,
                keeper::EncodeKey(kKeys[input->Below(std::size(kKeys))])});
    case 3:
      return Encode(Frame{Kind::kFetch, 5, keeper::EncodeAfter(input->Byte())});
    case 4:
      return Encode(Frame{static_cast<Kind>(5 + input->Below(6)), 6, ""});
    default:
      return PutFrame(input, fds);
  }
}

}  // namespace

void FuzzKeeperQuestions(Bytes bytes) {
  static LivingKeeper living;
  static const base::UniqueFd memory(::memfd_create("kept", MFD_CLOEXEC));
  static const base::UniqueFd process(
      static_cast<int>(::syscall(SYS_pidfd_open, ::getpid(), 0)));
  KeptHeads kept;
  Input input(bytes);
  {
    Asker asker(living.path(), &kept);
    const uint8_t how = input.Byte();
    const Role role = (how & 1) != 0 ? Role::kCommand : Role::kBroker;
    std::string hello = asker.HelloFrame(role, /*wait=*/true);
    if ((how & 2) != 0) hello = input.ShortText();
    // One that takes the keeper's place would end it.
    const auto frame = Decode(hello);
    const auto said = frame.ok()
                          ? keeper::DecodeHello(frame->body)
                          : absl::StatusOr<keeper::Hello>(frame.status());
    if (said.ok() && said->role == Role::kSuccessor) return;
    bool goes_on = !hello.empty() && asker.Greet(hello);
    while (goes_on && !input.empty()) {
      size_t fds = 0;
      const std::string question = QuestionOf(&input, &fds);
      std::vector<int> sent(fds, memory.get());
      if (fds > 0 && input.Flag()) sent[0] = process.get();
      goes_on = !question.empty() && asker.Ask(question, sent);
    }
  }
  Asker next(living.path(), &kept);
  Require(next.Greet(next.HelloFrame(Role::kBroker, /*wait=*/true)),
          "a keeper goes on to serve");
  next.CheckAll();
  Require(next.Ask(Encode(Frame{Kind::kDone, 9, ""}), {}), "it is emptied");
}

}  // namespace gmb::fuzz
