#ifndef GMB_CLIENT_GATE_SIGNALS_BLOCKED_H_
#define GMB_CLIENT_GATE_SIGNALS_BLOCKED_H_

#include <pthread.h>

#include <csignal>

namespace gmb::internal {

// While it lives, no signal handler runs on this thread, nor on threads that it
// starts: one that calls the driver would wait for its own thread.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_GATE_SIGNALS_BLOCKED_H_
