// Every request of a session: from its gRPC stream to the core, and back.
#include "broker/server/session_service.h"

#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/mutex.h"
#include "broker/server/answer_cost.h"
#include "proto/error_status.h"

namespace gmb::broker {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::ClientMessage, v1::BrokerMessage>;

// How long the end of a stream waits for a client to read what is being
// written. A write to one that never reads would not end before its connection.
constexpr std::chrono::seconds kLastWrite{1};

// A stream refused before it began.
class RefusedStream : public Reactor {
 public:
  explicit RefusedStream(const grpc::Status& status) { Finish(status); }
  void OnDone() override { delete this; }
};

// One open stream. gRPC owns its life through self_, which OnDone clears; the
// outbox shares it while attached. Finish is called once, when no write is in
// flight and no operation is just being started; none is started after it.
class SessionStream : public Reactor,
                      public StreamSink,
                      public std::enable_shared_from_this<SessionStream> {
 public:
  SessionStream(Core* core, RequestPace* pace, TimedWork* timed,
                grpc::CallbackServerContext* context, AuthenticatedCall call)
      : core_(core),
        pace_(pace),
        timed_(timed),
        context_(context),
        session_(call.caller.session),
        tenant_(call.caller.tenant),
        proof_(std::move(call.proof)) {}

  // Nothing is read before the outbox is attached: answers need it.
  void Begin() {
    self_ = shared_from_this();
    absl::StatusOr<std::shared_ptr<Outbox>> outbox =
        core_->AttachStream(session_, self_);
    if (!outbox.ok()) return Close(outbox.status());
    {
      base::MutexLock lock(&mu_);
      outbox_ = *std::move(outbox);
    }
    StartSendInitialMetadata();
    ReadNext();
  }

  bool Write(v1::BrokerMessage message) override {
    if (const int cost = CostOf(message); cost > 0)
      pace_->Count(tenant_, cost, std::chrono::steady_clock::now());
    {
      base::MutexLock lock(&mu_);
      if (ending_) return false;
      outgoing_ = std::move(message);
      writing_ = true;
    }
    StartWrite(&outgoing_);  // without the lock: it may complete at once
    return true;
  }

  void Close(const absl::Status& status) override {
    bool writing = false;
    {
      base::MutexLock lock(&mu_);
      if (ending_) return;
      ending_ = true;
      end_ = proto::ToGrpcStatus(status);
      writing = writing_;
    }
    if (writing) {
      timed_->At(std::chrono::steady_clock::now() + kLastWrite,
                 [weak = weak_from_this()] {
                   if (auto self = weak.lock()) self->AbandonWrite();
                 });
    }
    FinishIfIdle();
  }

  void OnReadDone(bool ok) override {
    if (!ok) {
      OnReadAll();
      return;
    }
    {
      base::MutexLock lock(&mu_);
      pace_->CountBytes(tenant_, incoming_.ByteSizeLong(), &let_in_,
                        std::chrono::steady_clock::now());
    }
    Handle();
    ReadNext();
  }

  void OnWriteDone(bool ok) override {
    std::shared_ptr<Outbox> outbox;
    {
      base::MutexLock lock(&mu_);
      writing_ = false;
      outbox = outbox_;
    }
    if (!ok) Close(absl::UnavailableError("the client stopped reading"));
    FinishIfIdle();
    if (outbox == nullptr) return;
    outbox->OnWriteDone(this);
    if (MayReadAgain()) ReadNext();
  }

  void OnCancel() override {
    Close(absl::CancelledError("the client went away"));
  }

  void OnDone() override {
    std::shared_ptr<Outbox> outbox;
    uint32_t unread = 0;
    {
      base::MutexLock lock(&mu_);
      outbox = std::move(outbox_);
      unread = std::exchange(let_in_, 0);
    }
    pace_->GiveBack(tenant_, unread, std::chrono::steady_clock::now());
    if (outbox != nullptr) (void)outbox->DetachStream(this);
    self_.reset();  // may delete this
  }

 private:
  // After one that took long, other tenants come first.
  void Handle() {
    const int cost = CostOfLooks(core_->HandleMessage(session_, incoming_));
    if (cost == 0) return;
    uint32_t unread = 0;
    {
      base::MutexLock lock(&mu_);
      unread = std::exchange(let_in_, 0);
    }
    const auto now = std::chrono::steady_clock::now();
    pace_->GiveBack(tenant_, unread, now);
    pace_->Count(tenant_, cost, now);
  }

  // The client has finished, and waits for its answers; or is gone, and then
  // OnCancel comes too.
  void OnReadAll() {
    std::shared_ptr<Outbox> outbox;
    {
      base::MutexLock lock(&mu_);
      outbox = outbox_;
    }
    if (outbox != nullptr) outbox->CloseOnceWritten(this);
  }

  // Without the lock: a read may complete, and be handled, at once.
  void ReadNext() {
    {
      base::MutexLock lock(&mu_);
      if (ending_) return;
      // A client that does not read its answers is not read either.
      waits_for_reader_ = outbox_->crowded();
      if (waits_for_reader_) return;
      if (const auto turn = TurnToWaitFor(); turn.has_value()) {
        return timed_->At(*turn, [weak = weak_from_this()] {
          if (auto self = weak.lock()) self->ReadNext();
        });
      }
      --let_in_;
      ++starting_;
    }
    StartRead(&incoming_);
    {
      base::MutexLock lock(&mu_);
      --starting_;
    }
    FinishIfIdle();
  }

  // A turn is waited for once; then all of it may be read.
  std::optional<RequestPace::Time> TurnToWaitFor()
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (let_in_ > 0) return std::nullopt;
    let_in_ = RequestPace::kTurn;
    const auto now = std::chrono::steady_clock::now();
    const RequestPace::Time turn = pace_->NextTurn(tenant_, now);
    return turn > now ? std::optional(turn) : std::nullopt;
  }

  bool MayReadAgain() {
    base::MutexLock lock(&mu_);
    if (!waits_for_reader_ || outbox_ == nullptr || outbox_->crowded())
      return false;
    waits_for_reader_ = false;
    return true;
  }

  // starting_ keeps the call, and with it the context, from finishing.
  void AbandonWrite() {
    {
      base::MutexLock lock(&mu_);
      if (finished_ || !writing_) return;
      ++starting_;
    }
    context_->TryCancel();  // without the lock: it may call OnCancel
    {
      base::MutexLock lock(&mu_);
      --starting_;
    }
    FinishIfIdle();
  }

  void FinishIfIdle() {
    {
      base::MutexLock lock(&mu_);
      if (!ending_ || finished_ || writing_ || starting_ > 0) return;
      finished_ = true;
    }
    Finish(end_);
  }

  Core* const core_;
  RequestPace* const pace_;
  TimedWork* const timed_;
  grpc::CallbackServerContext* const context_;
  const uint64_t session_;
  const quota::TenantId tenant_;
  const GrpcConnections::Proof proof_;
  std::shared_ptr<SessionStream> self_;
  v1::ClientMessage incoming_;  // one read at a time

  base::Mutex mu_;
  std::shared_ptr<Outbox> outbox_ ABSL_GUARDED_BY(mu_);
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  int starting_ ABSL_GUARDED_BY(mu_) = 0;
  uint32_t let_in_ ABSL_GUARDED_BY(mu_) = 0;  // of its turn, not read yet
  // The next request is read once fewer answers wait.
  bool waits_for_reader_ ABSL_GUARDED_BY(mu_) = false;
  // Written under mu_; read by gRPC while writing_ or ending_ keeps it still.
  v1::BrokerMessage outgoing_;
  grpc::Status end_;
};

}  // namespace

Reactor* SessionService::Session(grpc::CallbackServerContext* context) {
  absl::StatusOr<AuthenticatedCall> call = calls_->Authenticate(*context);
  if (!call.ok()) return new RefusedStream(proto::ToGrpcStatus(call.status()));
  auto stream = std::make_shared<SessionStream>(core_, pace_, timed_, context,
                                                *std::move(call));
  stream->Begin();
  return stream.get();
}

}  // namespace gmb::broker
