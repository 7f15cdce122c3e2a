#include "engine.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "gmb/error.h"

namespace model_servers {
namespace {

// Longer than a scope takes to get in when the memory is there, be the gate
// just parking; a restore takes longer.
constexpr absl::Duration kThere = absl::Microseconds(200);

// So long a batch waits for memory that others have before it steps aside, and
// so long it is aside at least: longer than an idle session takes to park.
constexpr absl::Duration kHeapWait = absl::Milliseconds(500);
constexpr absl::Duration kAside = absl::Milliseconds(60);

gmb::ErrorReason ReasonOf(const absl::Status& status) {
  const auto detail = gmb::GetErrorDetail(status);
  return detail ? detail->reason : gmb::ErrorReason::kUnspecified;
}

}  // namespace

// Everything that a batch needs, taken before its work begins: a batch that
// does not fit is refused at once and not half way.
class Engine::Buffers {
 public:
  explicit Buffers(gmb::Heap* heap) : heap_(heap) {}
  Buffers(const Buffers&) = delete;
  Buffers& operator=(const Buffers&) = delete;
  ~Buffers() {
    // A block that cannot be freed is not used again; nothing else to do.
    for (uint64_t* block : blocks_) heap_->Free(block).IgnoreError();
  }

  absl::Status Take(const std::vector<uint64_t>& plan, void* stream) {
    for (const uint64_t bytes : plan) {
      const absl::StatusOr<void*> block = heap_->Allocate(bytes, stream);
      if (!block.ok()) return block.status();
      blocks_.push_back(static_cast<uint64_t*>(*block));
    }
    return absl::OkStatus();
  }
  [[nodiscard]] const std::vector<uint64_t*>& blocks() const { return blocks_; }

 private:
  gmb::Heap* const heap_;
  std::vector<uint64_t*> blocks_;
};

// One batch at a time.
class Engine::Turn {
 public:
  explicit Turn(Engine* engine) : engine_(engine) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!taken_) return;
    const absl::MutexLock lock(&engine_->mu_);
    engine_->busy_ = false;
  }
  bool Take() {
    const absl::MutexLock lock(&engine_->mu_);
    const auto free = [this]() ABSL_NO_THREAD_SAFETY_ANALYSIS {
      return !engine_->busy_;
    };
    if (!engine_->mu_.AwaitWithTimeout(absl::Condition(&free),
                                       engine_->wait_)) {
      return false;
    }
    engine_->busy_ = true;
    taken_ = true;
    return true;
  }

 private:
  Engine* const engine_;
  bool taken_ = false;
};

absl::StatusOr<std::unique_ptr<Engine>> Engine::Start(
    const EngineOptions& options) {
  absl::StatusOr<Model> model = Model::Find(options.model, options.unit_bytes);
  if (!model.ok()) return model.status();
  std::unique_ptr<Engine> engine(new Engine(*std::move(model), options.wait));
  if (absl::Status opened =
          engine->Open(options.socket_dir, options.unit_bytes);
      !opened.ok()) {
    return opened;
  }
  if (absl::Status loaded = engine->LoadWeights(); !loaded.ok()) return loaded;
  // From here on memory is used inside scopes only.
  if (absl::Status on = engine->client_->TurnGateOn(); !on.ok()) return on;
  return engine;
}

absl::Status Engine::Open(const std::string& socket_dir, uint64_t unit_bytes) {
  gmb::ClientOptions client_options;
  client_options.socket_dir = socket_dir;
  client_options.program = absl::StrCat("model_server ", model_.name());
  auto client = gmb::Client::Connect(std::move(client_options));
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  if (client_->devices().size() != 1) {
    return absl::FailedPreconditionError(
        absl::StrCat("this server is for a broker of one device, not of ",
                     client_->devices().size()));
  }
  const gmb::Device& device = client_->devices().front();
  if (device.kind == gmb::DeviceKind::kHost) {
    compute_ = MakeHostCompute();
  } else {
    auto compute = MakeGpuCompute(device.uuid);
    if (!compute.ok()) return compute.status();
    compute_ = *std::move(compute);
  }
  gmb::HeapOptions heap_options;
  // Between requests no block is live, so there is nothing to keep: evicting
  // the heap costs no copy and no host memory.
  heap_options.contents = gmb::Contents::kDiscard;
  heap_options.least_growth_bytes = 16 * unit_bytes;
  heap_options.wait = std::min(kHeapWait, wait_);
  auto heap = gmb::Heap::Create(client_.get(), std::move(heap_options));
  if (!heap.ok()) return heap.status();
  heap_ = *std::move(heap);
  return absl::OkStatus();
}

absl::Status Engine::LoadWeights() {
  gmb::AcquireOptions how;
  how.wait = wait_;
  absl::StatusOr<gmb::Lease> lease =
      client_->Acquire(model_.weight_words() * sizeof(uint64_t), how);
  if (!lease.ok()) return lease.status();
  weights_ = *std::move(lease);
  auto* const words = static_cast<uint64_t*>(weights_.data());
  if (absl::Status filled = compute_->FillWeights(words, model_.weight_words(),
                                                  model_.weight_seed());
      !filled.ok()) {
    return filled;
  }
  // Sealing promises that nobody writes, so the filling has to be over. A sum
  // waits for it.
  Buffers cell(heap_.get());
  if (absl::Status taken = cell.Take({sizeof(uint64_t)}, compute_->stream());
      !taken.ok()) {
    return taken;
  }
  if (const auto sum = compute_->Sum(words, 1, cell.blocks().front());
      !sum.ok()) {
    return sum.status();
  }
  return weights_.Seal();
}

absl::StatusOr<Answer> Engine::Infer(uint64_t rows) {
  ++requests_;
  if (rows < 1 || rows > Model::kMostRows) {
    return absl::InvalidArgumentError(
        absl::StrCat("a batch has 1 to ", Model::kMostRows, " rows"));
  }
  Turn turn(this);
  absl::StatusOr<Answer> answer = absl::DeadlineExceededError(
      "other requests took too long; try again later");
  if (turn.Take()) answer = InferPatiently(rows);
  if (!answer.ok()) ++refused_;
  return answer;
}

// Batches that each hold a part of what they need, and wait for the rest, would
// wait for each other. So one that has waited a little gives all back, stays
// out of the gate until others can have its memory, and begins anew. A batch
// may be above the tenant's limit because of memory that the heap keeps for
// batches of other sizes; without that it stays above.
absl::StatusOr<Answer> Engine::InferPatiently(uint64_t rows) {
  const absl::Time deadline = absl::Now() + wait_;
  absl::BitGen random;
  Answer answer;
  bool trimmed = false;
  while (true) {
    const absl::Status status = InferInTurn(rows, &answer);
    if (status.ok()) return answer;
    const gmb::ErrorReason reason = ReasonOf(status);
    const bool at_limit = reason == gmb::ErrorReason::kTenantLimit;
    const bool later = reason == gmb::ErrorReason::kPausing ||
                       reason == gmb::ErrorReason::kPoolExhausted;
    const bool again = at_limit ? !trimmed : later && absl::Now() < deadline;
    if (!again) return status;
    heap_->Trim(std::numeric_limits<uint64_t>::max());
    trimmed = true;
    if (later) absl::SleepFor(absl::Uniform(random, 1.0, 2.0) * kAside);
  }
}

absl::StatusOr<gmb::Scope> Engine::EnterGate(Answer* answer) {
  const absl::Time began = absl::Now();
  absl::StatusOr<gmb::Scope> scope = client_->Enter(kThere);
  if (!scope.ok()) {  // not back so soon, or not granted so soon
    answer->met_evicted = true;
    scope = client_->Enter(wait_);
  }
  answer->wait += absl::Now() - began;
  return scope;
}

absl::Status Engine::InferInTurn(uint64_t rows, Answer* answer) {
  const absl::StatusOr<gmb::Scope> scope = EnterGate(answer);
  if (!scope.ok()) return scope.status();
  const absl::Time began = absl::Now();
  Buffers buffers(heap_.get());
  if (absl::Status taken = buffers.Take(model_.Plan(rows), compute_->stream());
      !taken.ok()) {
    return taken;
  }
  const absl::StatusOr<uint64_t> sum =
      model_.Run(*compute_, static_cast<const uint64_t*>(weights_.data()), rows,
                 buffers.blocks());
  if (!sum.ok()) return sum.status();
  answer->sum = *sum;
  answer->run = absl::Now() - began;
  return absl::OkStatus();
}

Stats Engine::stats() {
  const gmb::HeapStatistics heap = heap_->statistics();
  Stats stats;
  stats.requests = requests_;
  stats.refused = refused_;
  stats.held_bytes = weights_.size_bytes() + heap.leased_bytes;
  stats.peak_held_bytes = weights_.size_bytes() + heap.peak_leased_bytes;
  // The tenant has this session alone. Without a broker nothing is known to be
  // away.
  if (const auto quota = client_->GetQuota(); quota.ok() && !quota->empty()) {
    const uint64_t away = quota->front().evicted_bytes;
    stats.held_bytes -= std::min(stats.held_bytes, away);
  }
  return stats;
}

}  // namespace model_servers
