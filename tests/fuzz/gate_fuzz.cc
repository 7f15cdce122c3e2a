// A gate's page that its client writes, and the broker reads and changes: what
// the broker believes follows from the words that it saw, whatever they are.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "broker/machine/gates.h"
#include "broker/machine/session.h"
#include "broker/machine/state.h"
#include "ipc/gate_page.h"
#include "ipc/gate_word.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

using ::gmb::quota::Gate;
using ::gmb::quota::Instant;
using ipc::GateState;
using ipc::GateWord;

constexpr int64_t kStart = 10'000'000'000;

// The word that a broker takes for its own, but for a pause.
uint64_t WithoutPause(GateWord word) { return ipc::AfterWithdraw(word).bits(); }

class GateRun {
 public:
  explicit GateRun(Bytes bytes) : input_(bytes) {
    cells_->word.store(ipc::kGateOff.bits());
  }

  void Go() {
    while (!input_.empty()) {
      Step();
      CheckViews();
    }
  }

 private:
  [[nodiscard]] GateWord Word() const { return GateWord(cells_->word.load()); }
  [[nodiscard]] broker::SessionGate& Broker() { return *session_->gate; }

  void Step() {
    switch (input_.Below(12)) {
      case 0:
        return cells_->word.store(input_.Number<uint64_t>());
      case 1:
        return cells_->word.store(SomeWord().bits());
      case 2:
        return cells_->left_at_ns.store(SomeTime());
      case 3:
        return cells_->woken_at_ns.store(SomeTime());
      case 4:
        now_.ns += input_.Number<uint32_t>();
        return;
      case 5:
        return Close();
      case 6:
        return Reopen();
      case 7:
        return Pause();
      case 8:
        on_ = input_.Flag();
        return gates_.SetOn(session_.get(), on_);
      case 9:
        return Adopt();
      case 10:
        return ScopesOfARuleKeeper();
      default:
        return Look();
    }
  }
  GateWord SomeWord() {
    const uint8_t how = input_.Byte();
    const GateWord word(static_cast<GateState>(how & 3), (how >> 2) & 3,
                        input_.Byte(), (how & 16) != 0);
    // Most are those of clients that mean well.
    return word.consistent() || (how & 32) != 0 ? word : ipc::kGateOff;
  }
  uint64_t SomeTime() {
    if (input_.Flag()) return input_.Number<uint64_t>();
    return static_cast<uint64_t>(now_.ns) - input_.Number<uint32_t>();
  }

  void Look() {
    const GateWord word = Word();
    const Gate seen = Broker().Look(now_);
    if (closed_) return Require(seen == Gate::kClosed, "closed by us stays so");
    const Gate on = word.parked() ? Gate::kParked : Gate::kActive;
    Require(seen == (on_ ? on : Gate::kOff), "a look sees what the word says");
    Require(Broker().epoch() == word.epoch(), "a look sees the epoch");
    Require(word.scopes() == 0 || !Broker().idle_since().has_value(),
            "nobody is idle with a scope in");
    Require(Word() == word, "a look changes nothing");
  }
  void Close() {
    const GateWord word = Word();
    const bool was_closed = closed_;
    closed_ = gates_.CloseAll({session_.get()});
    if (was_closed) return Require(closed_, "closed stays closed");
    Require(closed_ == word.parked(), "what is parked, and no more, is closed");
    const GateWord after(GateState::kClosed, 0, word.epoch());
    Require(Word() == (closed_ ? after : word), "a close is one step");
    closed_word_ = after;
    if (closed_) paused_ = false;
  }
  void Reopen() {
    const GateWord word = Word();
    const bool was_closed = std::exchange(closed_, false);
    const bool reopened = gates_.Reopen(session_.get());
    if (!was_closed)
      return Require(reopened && Word() == word, "what is open stays so");
    const bool is_ours =
        WithoutPause(word) == WithoutPause(closed_word_) && word.scopes() == 0;
    Require(reopened == is_ours, "a word that was written over is noticed");
    const GateWord after(GateState::kParked, 0, word.epoch());
    Require(Word() == (reopened ? after : word), "a reopening is one step");
  }
  void Pause() {
    const GateWord word = Word();
    const bool on = input_.Flag();
    if (on) {
      gates_.Pause(session_.get(), now_);
    } else {
      gates_.Withdraw(session_.get());
    }
    paused_ = on;
    Require(Word() == (on ? ipc::AfterPause(word) : ipc::AfterWithdraw(word)),
            "a pause is one bit");
  }
  // As the next broker does, with the page as it is.
  void Adopt() {
    const GateWord word = Word();
    on_ = input_.Flag();
    session_ = NewSession();
    broker::SessionRecord record;
    record.gate_on = on_;
    gates_.Adopt(session_.get(), record);
    paused_ = false;
    closed_word_ = ipc::AfterWithdraw(word);
    closed_ = on_ && word.state() == GateState::kClosed;
    Require(Word() == closed_word_, "the next broker ends a pause alone");
    Require(Broker().closed() == closed_, "what says CLOSED was closed by us");
  }
  // A scope in, or out, or the parker's steps, by the rules.
  void ScopesOfARuleKeeper() {
    const GateWord word = Word();
    std::optional<GateWord> next;
    switch (input_.Below(5)) {
      case 0:
        next = ipc::AfterEnter(word);
        break;
      case 1:
        next = ipc::AfterLeave(word);
        break;
      case 2:
        next = ipc::AfterSyncBegin(word);
        break;
      case 3:
        next = ipc::AfterSyncEnd(word, input_.Flag());
        break;
      default:
        next = ipc::AfterTakeBack(word);
    }
    if (!next.has_value()) return;
    const bool comes_in = next->scopes() > word.scopes();
    Require(!comes_in || !word.paused(), "nobody comes in during a pause");
    Require(!comes_in || word.state() != GateState::kClosed,
            "nobody comes in while it is closed");
    Require(!word.consistent() || next->consistent(),
            "the rules lead to words that make sense");
    cells_->word.store(next->bits());
  }

  void CheckViews() {
    Require(Broker().closed() == closed_, "the broker knows what it closed");
    Require(Broker().pausing_until().has_value() == paused_,
            "the broker knows whom it has paused");
    const auto idle = Broker().idle_since();
    Require(!idle.has_value() || (idle->ns >= kStart && idle->ns <= now_.ns),
            "nobody is idle since before it began, or later than now");
    const auto gap = Broker().usual_gap();
    Require(!gap.has_value() || gap->count() >= 0, "a gap takes time");
    const auto use = Broker().usual_use();
    Require(!use.has_value() ||
                (use->count() >= 0 && use->count() <= now_.ns - kStart),
            "a use is no longer than the session");
    const uint64_t epoch = input_.Byte();
    Require(Broker().UnusedSince(epoch) == ipc::CopyIsTrue(Word(), epoch),
            "a copy is true while nothing was used");
  }

  std::unique_ptr<broker::Session> NewSession() {
    return std::unique_ptr<broker::Session>(new broker::Session{
        .id = 1,
        .peer = {},
        .token = {},
        .tenant = ::gmb::quota::TenantId{1},
        .since = {},
        .gate = broker::Placed<broker::SessionGate>(
            std::make_unique<broker::SessionGate>(cells_, Instant{kStart})),
        .talk = {},
        .group = {},
        .never_lends = {},
        .leases = {},
        .leased_bytes = {},
        .last_move = {},
        .waking = {},
        .trims = {}});
  }

  Input input_;
  std::shared_ptr<ipc::GateCells> cells_ = std::make_shared<ipc::GateCells>();
  broker::State state_{broker::MachineOptions(), /*host_pool_bytes=*/0};
  broker::Gates gates_{state_};
  std::unique_ptr<broker::Session> session_ = NewSession();
  Instant now_{kStart};
  bool on_ = false;
  bool closed_ = false;
  bool paused_ = false;
  GateWord closed_word_;
};

// An fd that somebody says is a page.
void MapSomePage(Input* input) {
  const uint8_t how = input->Byte();
  const size_t bytes =
      (how & 1) != 0 ? ipc::GatePage::kBytes : input->Number<uint16_t>();
  const base::UniqueFd fd(::memfd_create(
      "page", MFD_CLOEXEC | ((how & 2) != 0 ? MFD_ALLOW_SEALING : 0)));
  Require(::ftruncate(fd.get(), static_cast<off_t>(bytes)) == 0, "memory");
  const int seals = how >> 2 & 0xf;
  (void)::fcntl(fd.get(), F_ADD_SEALS, seals);
  const int is = ::fcntl(fd.get(), F_GET_SEALS);
  constexpr int kSize = F_SEAL_SHRINK | F_SEAL_GROW;
  const auto page = ipc::GatePage::Map(fd.get());
  Require(
      !page.ok() || (bytes == ipc::GatePage::kBytes && (is & kSize) == kSize),
      "only a page whose size is sealed is mapped");
}

}  // namespace

void FuzzGate(Bytes bytes) {
  Input input(bytes.subspan(0, std::min<size_t>(bytes.size(), 3)));
  MapSomePage(&input);
  GateRun(bytes).Go();
}

}  // namespace gmb::fuzz
