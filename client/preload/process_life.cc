// `gmb run`: a forked child and an ending process touch no lease.
#include "client/preload/process_life.h"

#include <pthread.h>

#include <atomic>
#include <cstdlib>

#include "client/preload/program_gate.h"

namespace gmb::preload {
namespace {

std::atomic<bool> used{false};
std::atomic<bool> forked{false};
std::atomic<bool> exiting{false};

void NoteFork() {
  if (used.load(std::memory_order_relaxed)) {
    forked.store(true, std::memory_order_relaxed);
  }
}

void NoteExit() {
  // In a child of fork() the locks may be those of threads that are not there.
  if (!InForkedChild()) ProgramGate::Stop();
  exiting.store(true, std::memory_order_relaxed);
}

}  // namespace

void NoteUse() {
  static const bool kNoted = [] {
    used.store(true, std::memory_order_relaxed);
    return pthread_atfork(nullptr, nullptr, NoteFork) == 0;
  }();
  static_cast<void>(kNoted);
}

void NoteExitFromNowOn() {
  static const bool kNoted = std::atexit(NoteExit) == 0;
  static_cast<void>(kNoted);
}

bool InForkedChild() { return forked.load(std::memory_order_relaxed); }

bool Exiting() { return exiting.load(std::memory_order_relaxed); }

}  // namespace gmb::preload
