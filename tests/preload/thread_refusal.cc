// A machine that has no room for one more thread, once the program says so.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>

namespace {

std::atomic<bool> refused{false};

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void RefuseThreads() { refused = true; }

__attribute__((visibility("default"))) int pthread_create(
    pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
    void* argument) {
  if (refused) return EAGAIN;
  static const auto kReal = reinterpret_cast<decltype(&pthread_create)>(
      dlsym(RTLD_NEXT, "pthread_create"));
  return kReal(thread, attributes, body, argument);
}

}  // extern "C"
