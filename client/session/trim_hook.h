#ifndef GMB_CLIENT_SESSION_TRIM_HOOK_H_
#define GMB_CLIENT_SESSION_TRIM_HOOK_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "gmb/options.h"
#include "gmb/v1/session.pb.h"

namespace gmb::internal {

// Calls the heaps of the session and then the application's trim handlers, on a
// thread of its own, so that they may block and call back into the library. It
// also says how each Trim of the broker is to be answered. Exceptions that they
// throw are dropped.
//
// There is one call at a time, for all Trims of a device that wait, with the
// newest's bytes. Each handler is asked for the bytes that the heaps have not
// given. A Trim whose time is over before its call ends is answered once, as
// busy. The call is made all the same, late: the broker asks once for the bytes
// that were said to be trimmable, and nobody would say it anew. Only Trims that
// are too many get no call. With nobody to call every Trim is answered at once.
// Thread-safe.
class TrimHook {
 public:
  using Clock = std::chrono::steady_clock;
  struct Answer {
    uint64_t trim;
    bool busy;
  };

  // Gives back what it can do without, `bytes` of the device if that much is
  // there; says how many. Must not throw.
  using HeapTrimmer =
      std::function<uint64_t(const std::string& device, uint64_t bytes)>;

  // Starts a thread if there is a handler, or with the first heap.
  explicit TrimHook(TrimHandler handler);
  TrimHook(const TrimHook&) = delete;
  TrimHook& operator=(const TrimHook&) = delete;
  ~TrimHook() { Stop(); }

  // Afterwards the handler is not called or running, unless this runs inside
  // it. Trims are answered as if there was none. With a client that has joined
  // it does not wait: then the handler has to stay good.
  void Stop();

  // `heap` is a name for RemoveHeap, which must not run inside a trimmer; when
  // it returns, the heap's is not running and is not called any more.
  void AddHeap(const void* heap, HeapTrimmer trimmer);
  void RemoveHeap(const void* heap);

  // The same for the handler of a client that has joined the session. It may be
  // removed inside itself.
  void AddHandler(const void* client, TrimHandler handler);
  void RemoveHandler(const void* client);

  // `wake` is called when there is something for TakeAnswers or NextDue to say
  // that they did not before, under a lock: it must only wake. Null: nobody
  // looks any more, and when this returns `wake` is not running.
  void SetWake(std::function<void()> wake);

  void OnTrim(const v1::Trim& trim, Clock::time_point now);
  // The answers to give now, each Trim once.
  [[nodiscard]] std::vector<Answer> TakeAnswers(Clock::time_point now);
  // When to ask again, if nothing wakes before.
  [[nodiscard]] std::optional<Clock::time_point> NextDue() const;

 private:
  // A broker that never stops asking fills no memory: it is answered busy.
  static constexpr size_t kMostTrims = 64;

  struct Pending {
    uint64_t trim;
    std::string device;
    uint64_t bytes;
    Clock::time_point due;
    bool running = false;   // the handler is being called for it
    bool answered = false;  // busy: its time was over before
  };
  // Outlives the TrimHook when that is destroyed inside the handler.
  struct State {
    explicit State(TrimHandler trim_handler)
        : handler(std::move(trim_handler)) {}

    void Wake() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
      if (wake != nullptr) wake();
    }

    [[nodiscard]] bool HasNobody() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu) {
      return handler == nullptr && heaps.empty() && joined.empty();
    }

    const TrimHandler handler;
    base::Mutex mu;
    base::CondVar changed;
    std::function<void()> wake ABSL_GUARDED_BY(mu);
    bool stopping ABSL_GUARDED_BY(mu) = false;
    std::map<const void*, HeapTrimmer> heaps ABSL_GUARDED_BY(mu);
    std::map<const void*, TrimHandler> joined ABSL_GUARDED_BY(mu);
    const void* running ABSL_GUARDED_BY(mu) = nullptr;  // of both
    std::thread::id thread ABSL_GUARDED_BY(mu);         // that calls them
    std::vector<Pending> pending ABSL_GUARDED_BY(mu);
    std::vector<Answer> answers ABSL_GUARDED_BY(mu);
  };
  static void Run(State& state);
  static void Call(State& state, const Pending& trim);
  static void CallJoined(State& state, const Pending& trim, uint64_t bytes);
  // How many of `bytes` the heaps have given.
  static uint64_t TrimHeaps(State& state, const std::string& device,
                            uint64_t bytes);
  // The newest Trim of the device that has waited the longest; all of that
  // device are running from now on.
  static std::optional<Pending> Begin(State& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu);
  static void AnswerRunning(State& state)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state.mu);

  void StartThread();

  const std::shared_ptr<State> state_;
  base::Mutex thread_mu_;  // while the thread is started or ended
  std::thread thread_ ABSL_GUARDED_BY(thread_mu_);
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_TRIM_HOOK_H_
