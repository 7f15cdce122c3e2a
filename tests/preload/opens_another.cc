// A part of the client library that opens what OPENS_ANOTHER names while it is
// loaded, as another thread of the program may at that time.
#include <dlfcn.h>

#include <cstdlib>

[[gnu::constructor]] static void Open() {
  const char* const path = std::getenv("OPENS_ANOTHER");
  if (path != nullptr) dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
}
