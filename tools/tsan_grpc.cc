// Linked into every program of a ThreadSanitizer build
// (cmake/sanitizers.cmake), and into nothing else. The distribution's gRPC and
// Abseil are not instrumented: ThreadSanitizer does not see what they order,
// and would call correct code a race that relies on it. The definitions below
// stand before the libraries' own, also for calls from one library into
// another. They call the library's and tell ThreadSanitizer what comes before
// what:
//  - a lock of Abseil: what was done before it was given up comes before what
//    is done once it is taken again. These are all that gRPC 1.51 uses.
//  - an operation on a call: its start comes before its callback. One of gRPC's
//    threads takes that out of a completion queue, often without any lock.
//  - the end of a call: all that counted it down comes before OnDone, OnCancel.
//    Part of that counting is in the library, part in its headers. A thread
//    that counts it down in the library gave up its batch's reference to the
//    call before, so that is taken for the counting. The library does not say
//    which call OnDone is of: all calls share one mark.
// With these three nothing of ours needs a suppression.
#include <dlfcn.h>
#include <grpc/grpc.h>
#include <sanitizer/tsan_interface.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "absl/base/options.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/server_callback.h"

#if ABSL_OPTION_USE_INLINE_NAMESPACE != 1
#error "the names below are made for an Abseil with an inline namespace"
#endif
#define GMB_QUOTE(name) #name
#define GMB_QUOTE_VALUE(name) GMB_QUOTE(name)

namespace {

template <typename Function>
Function* Library(const std::string& symbol) {
  void* const found = dlsym(RTLD_NEXT, symbol.c_str());
  if (found == nullptr) {
    std::fprintf(stderr, "tsan_grpc: no library has %s\n", symbol.c_str());
    std::abort();
  }
  return reinterpret_cast<Function*>(found);
}

// A member function of Abseil, by its mangled name after the namespaces. It is
// called like a function that takes `this` first.
template <typename Function>
Function* Abseil(const std::string& mangled) {
  const std::string version =
      GMB_QUOTE_VALUE(ABSL_OPTION_INLINE_NAMESPACE_NAME);
  return Library<Function>("_ZN4absl" + std::to_string(version.size()) +
                           version + mangled);
}

// Where the ends of all calls meet. See above.
char batch_ended;

}  // namespace

namespace absl {
ABSL_NAMESPACE_BEGIN

void Mutex::Lock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const lock = Abseil<void(Mutex*)>("5Mutex4LockEv");
  lock(this);
  __tsan_acquire(this);
}

bool Mutex::TryLock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const try_lock = Abseil<bool(Mutex*)>("5Mutex7TryLockEv");
  const bool locked = try_lock(this);
  if (locked) __tsan_acquire(this);
  return locked;
}

void Mutex::Unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  static auto* const unlock = Abseil<void(Mutex*)>("5Mutex6UnlockEv");
  __tsan_release(this);
  unlock(this);
}

void CondVar::Wait(Mutex* mu) {
  static auto* const wait =
      Abseil<void(CondVar*, Mutex*)>("7CondVar4WaitEPNS0_5MutexE");
  __tsan_release(mu);
  wait(this, mu);
  __tsan_acquire(mu);
}

bool CondVar::WaitWithTimeout(Mutex* mu, Duration timeout) {
  static auto* const wait = Abseil<bool(CondVar*, Mutex*, Duration)>(
      "7CondVar15WaitWithTimeoutEPNS0_5MutexENS0_8DurationE");
  __tsan_release(mu);
  const bool timed_out = wait(this, mu, timeout);
  __tsan_acquire(mu);
  return timed_out;
}

bool CondVar::WaitWithDeadline(Mutex* mu, Time deadline) {
  static auto* const wait = Abseil<bool(CondVar*, Mutex*, Time)>(
      "7CondVar16WaitWithDeadlineEPNS0_5MutexENS0_4TimeE");
  __tsan_release(mu);
  const bool timed_out = wait(this, mu, deadline);
  __tsan_acquire(mu);
  return timed_out;
}

ABSL_NAMESPACE_END
}  // namespace absl

namespace grpc::internal {

void ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static auto* const schedule = Library<void(ServerCallbackCall*, bool)>(
      "_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  __tsan_acquire(&callbacks_outstanding_);
  __tsan_acquire(&batch_ended);
  schedule(this, inline_ondone);
}

void ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static auto* const call = Library<void(ServerCallbackCall*, ServerReactor*)>(
      "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_"
      "13ServerReactorE");
  __tsan_acquire(&on_cancel_conditions_remaining_);
  call(this, reactor);
}

}  // namespace grpc::internal

extern "C" {

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops,
                                      size_t count, void* tag, void* reserved) {
  static auto* const start =
      Library<decltype(grpc_call_start_batch)>("grpc_call_start_batch");
  __tsan_release(tag);
  return start(call, ops, count, tag, reserved);
}

void grpc_call_unref(grpc_call* call) {
  static auto* const unref =
      Library<decltype(grpc_call_unref)>("grpc_call_unref");
  __tsan_release(&batch_ended);
  unref(call);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue,
                                      gpr_timespec deadline, void* reserved) {
  static auto* const next = Library<decltype(grpc_completion_queue_next)>(
      "grpc_completion_queue_next");
  const grpc_event event = next(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"
