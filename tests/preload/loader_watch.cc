// Ends a process that allocates inside of dl_iterate_phdr's callback: the loader's
// lock is held there, and another thread may wait for that with the allocator's.
#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>

extern "C" void* __libc_malloc(size_t bytes);

namespace {

[[gnu::tls_model("initial-exec")]] thread_local int inside = 0;

using Visit = int (*)(dl_phdr_info*, size_t, void*);

struct Watched {
  Visit visit;
  void* data;
};

int VisitWatched(dl_phdr_info* library, size_t size, void* data) {
  const auto* const watched = static_cast<const Watched*>(data);
  ++inside;
  const int result = watched->visit(library, size, watched->data);
  --inside;
  return result;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(size_t bytes) {
  if (inside > 0) {
    constexpr char kSaid[] = "allocates with the loader's lock\n";
    static_cast<void>(write(STDERR_FILENO, kSaid, sizeof(kSaid) - 1) + 1);
    std::abort();
  }
  return __libc_malloc(bytes);
}

extern "C" __attribute__((visibility("default"))) int dl_iterate_phdr(
    Visit visit, void* data) {
  static const auto kReal = reinterpret_cast<int (*)(Visit, void*)>(
      dlsym(RTLD_NEXT, "dl_iterate_phdr"));
  Watched watched{visit, data};
  return kReal(VisitWatched, &watched);
}
