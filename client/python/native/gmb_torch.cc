// PyTorch's segments become leases: the functions that torch calls.
#include "client/python/native/gmb_torch.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <utility>
#include <vector>

#include "client/python/native/gmb_library.h"
#include "client/python/native/segments.h"

namespace gmb::python {
namespace {

// The arguments of gmb_torch_open.
struct Session {
  gmb_client* client = nullptr;      // null: not open
  std::vector<std::string> devices;  // empty: not the broker's
  int64_t wait_ms = 0;
};

struct State {
  Segments segments;
  std::atomic<uint64_t> waiting{0};
  std::atomic<uint64_t> trims{0};
  std::atomic<pid_t> pid{0};  // that opened it; a forked child has no leases

  std::shared_mutex mu;  // guards `session`; shared while a lease is acquired
  Session session;

  std::recursive_mutex trim_mu;  // held while `trim` runs
  gmb_trim_callback trim = nullptr;
};

// Never destroyed: torch frees segments while the process ends.
State& TheState() {
  static State* const kState = new State;
  return *kState;
}

bool InChild(const State& state) {
  const pid_t pid = state.pid.load(std::memory_order_relaxed);
  return pid != 0 && pid != ::getpid();
}

struct ThreadState {
  uint64_t group = 0;
  int32_t contents = GMB_CONTENTS_PRESERVE;
  gmb_torch_failure failure{};
};

ThreadState& ThisThread() {
  static thread_local ThreadState state;
  return state;
}

void* Fail(uint64_t bytes, int32_t code, const char* message) {
  gmb_torch_failure& failure = ThisThread().failure;
  failure = {};
  failure.bytes = std::max<uint64_t>(bytes, 1);
  failure.code = code;
  std::strncpy(failure.message, message, sizeof(failure.message) - 1);
  return nullptr;
}

void* Fail(uint64_t bytes, gmb_error* error) {
  Fail(bytes, TheLibrary().gmb_error_code(error),
       TheLibrary().gmb_error_message(error));
  gmb_torch_failure& failure = ThisThread().failure;
  failure.reason = TheLibrary().gmb_error_reason(error);
  failure.deficit_bytes = TheLibrary().gmb_error_deficit_bytes(error);
  failure.retry_after_ms = TheLibrary().gmb_error_retry_after_ms(error);
  TheLibrary().gmb_error_free(error);
  return nullptr;
}

void* Allocate(State& state, uint64_t bytes, int device) {
  if (InChild(state)) {
    return Fail(bytes, GMB_CODE_FAILED_PRECONDITION,
                "gmb: this process was forked from one that uses gmb: leases "
                "stay with the parent; start it with spawn or forkserver");
  }
  const std::shared_lock lock(state.mu);
  const Session& session = state.session;
  if (session.client == nullptr) {
    return Fail(bytes, GMB_CODE_FAILED_PRECONDITION,
                "gmb: gmb.torch is not enabled any more; call "
                "gmb.torch.enable()");
  }
  const size_t index = static_cast<size_t>(device);
  if (device < 0 || index >= session.devices.size() ||
      session.devices[index].empty()) {
    return Fail(bytes, GMB_CODE_NOT_FOUND,
                "gmb: the broker does not have this CUDA device");
  }
  ThreadState& thread = ThisThread();
  gmb_acquire_options how;
  TheLibrary().gmb_acquire_options_init(&how, sizeof(how));
  how.device = session.devices[index].c_str();
  how.wait_ms = session.wait_ms;
  how.contents = thread.contents;
  gmb_lease* lease = nullptr;
  state.waiting.fetch_add(1);
  gmb_error* const error =
      TheLibrary().gmb_acquire(session.client, bytes, &how, &lease);
  state.waiting.fetch_sub(1);
  if (error != nullptr) return Fail(bytes, error);
  thread.failure = {};
  state.segments.Add(lease, device, thread.group);
  return TheLibrary().gmb_lease_data(lease);
}

}  // namespace
}  // namespace gmb::python

using gmb::python::InChild;
using gmb::python::ReleaseLease;
using gmb::python::Session;
using gmb::python::State;
using gmb::python::TheState;
using gmb::python::ThisThread;

void gmb_torch_open(gmb_client* client, const char* const* devices,
                    int32_t count, int64_t wait_ms) {
  Session session{.client = client, .devices = {}, .wait_ms = wait_ms};
  for (int32_t i = 0; i < count; ++i) {
    session.devices.emplace_back(devices[i] == nullptr ? "" : devices[i]);
  }
  State& state = TheState();
  state.pid.store(::getpid());
  const std::unique_lock lock(state.mu);
  state.session = std::move(session);
}

void gmb_torch_close() {
  State& state = TheState();
  if (InChild(state)) return;
  const std::unique_lock lock(state.mu);
  state.session = {};
}

void* gmb_torch_alloc(ssize_t bytes, int device, void* /*stream*/) {
  return gmb::python::Allocate(TheState(), static_cast<uint64_t>(bytes),
                               device);
}

void gmb_torch_free(void* address, ssize_t /*bytes*/, int /*device*/,
                    void* /*stream*/) {
  State& state = TheState();
  if (InChild(state)) return;
  ReleaseLease(state.segments.Take(address));
}

void gmb_torch_adopt(gmb_lease* lease, int32_t device) {
  TheState().segments.Add(lease, device, /*group=*/0, /*sealed=*/true);
}

void gmb_torch_set_group(uint64_t group, int32_t contents) {
  ThisThread().group = group;
  ThisThread().contents = contents;
}

gmb_error* gmb_torch_seal(uint64_t group) {
  return TheState().segments.Seal(group);
}

int32_t gmb_torch_find(const void* address, gmb_torch_segment* segment) {
  const auto found = TheState().segments.Find(address);
  *segment = found.value_or(gmb_torch_segment{});
  return found.has_value() ? 1 : 0;
}

void gmb_torch_get_totals(gmb_torch_totals* totals) {
  *totals = TheState().segments.totals();
  totals->waiting = TheState().waiting.load();
  totals->trims = TheState().trims.load();
}

void gmb_torch_take_failure(gmb_torch_failure* failure) {
  *failure = ThisThread().failure;
  ThisThread().failure = {};
}

void gmb_torch_begin_capture() { TheState().segments.BeginCapture(); }

void gmb_torch_end_capture() {
  for (gmb_lease* const lease : TheState().segments.EndCapture()) {
    ReleaseLease(lease);
  }
}

void gmb_torch_on_trim(const char* device, uint64_t bytes, int64_t within_ms,
                       void* user) {
  State& state = TheState();
  state.trims.fetch_add(1);
  if (state.waiting.load() > 0 || state.segments.capturing()) return;
  const std::lock_guard lock(state.trim_mu);
  if (state.trim != nullptr) state.trim(device, bytes, within_ms, user);
}

void gmb_torch_set_trim(gmb_trim_callback callback) {
  State& state = TheState();
  if (InChild(state)) return;
  const std::lock_guard lock(state.trim_mu);
  state.trim = callback;
}
