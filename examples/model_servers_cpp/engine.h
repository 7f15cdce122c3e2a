#ifndef MODEL_SERVERS_ENGINE_H_
#define MODEL_SERVERS_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "compute.h"
#include "gmb/client.h"
#include "gmb/heap.h"
#include "gmb/lease.h"
#include "model.h"

namespace model_servers {

struct EngineOptions {
  std::string model;
  uint64_t unit_bytes = 0;
  std::string socket_dir;  // of the tenant; empty: GMB_SOCKET_DIR, or /run/gmb
  // How long a request waits for its turn, for memory that is away, and for
  // what others have, each.
  absl::Duration wait = absl::Seconds(10);
};

struct Answer {
  uint64_t sum = 0;
  bool met_evicted = false;  // the memory was not there when it began
  absl::Duration wait;       // to get into the gate, all attempts together
  absl::Duration run;        // of the one that succeeded
};

struct Stats {
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t held_bytes = 0;       // on the device now
  uint64_t peak_held_bytes = 0;  // leased at the same time so far
};

// A model in leased memory: its weights in a sealed lease, what a batch needs
// on a heap, and its work in scopes of the gate. Thread-safe; batches run one
// after the other.
class Engine {
 public:
  // Connects, leases and fills the weights, and turns the gate on.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Engine>> Start(
      const EngineOptions& options);
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // INVALID_ARGUMENT when rows are not within [1, Model::kMostRows];
  // RESOURCE_EXHAUSTED, and others of the broker's refusals, when memory does
  // not suffice; DEADLINE_EXCEEDED when it, or the turn, did not come in time.
  [[nodiscard]] absl::StatusOr<Answer> Infer(uint64_t rows);
  [[nodiscard]] Stats stats();
  // OK while the session lives.
  [[nodiscard]] absl::Status health() const { return client_->status(); }
  [[nodiscard]] const Model& model() const { return model_; }

 private:
  class Buffers;
  class Turn;
  Engine(Model model, absl::Duration wait)
      : model_(std::move(model)), wait_(wait) {}
  absl::Status Open(const std::string& socket_dir, uint64_t unit_bytes);
  absl::Status LoadWeights();
  absl::StatusOr<gmb::Scope> EnterGate(Answer* answer);
  absl::StatusOr<Answer> InferPatiently(uint64_t rows);
  absl::Status InferInTurn(uint64_t rows, Answer* answer);

  const Model model_;
  const absl::Duration wait_;
  // In this order: the heap ends before the client that it uses.
  std::unique_ptr<gmb::Client> client_;
  std::unique_ptr<Compute> compute_;
  gmb::Lease weights_;
  std::unique_ptr<gmb::Heap> heap_;

  absl::Mutex mu_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<uint64_t> requests_ = 0;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace model_servers

#endif  // MODEL_SERVERS_ENGINE_H_
