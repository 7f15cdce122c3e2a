#include "tests/preload/program_api.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#define SYMBOL_TEXT_OF(x) #x
#define SYMBOL_TEXT(x) SYMBOL_TEXT_OF(x)

namespace {

using GetProcAddress = CUresult (*)(const char*, void**, int, cuuint64_t,
                                    CUdriverProcAddressQueryResult*);

void* Require(void* found, const char* name) {
  if (found == nullptr) {
    std::printf("no %s\n", name);
    std::exit(9);
  }
  return found;
}

}  // namespace

Api LoadApi(const std::string& how) {
  Api api{};
#ifdef PROGRAM_IS_LINKED
  if (how == "linked") {
#define PROGRAM_TAKE(name) api.name##_ = &::name;
    PROGRAM_FUNCTIONS(PROGRAM_TAKE)
#undef PROGRAM_TAKE
    return api;
  }
#endif
  void* const driver = Require(dlopen("libcuda.so.1", RTLD_NOW), "driver");
  if (how == "dlsym") {
#define PROGRAM_LOOK_UP(name)                        \
  api.name##_ = reinterpret_cast<decltype(&::name)>( \
      Require(dlsym(driver, SYMBOL_TEXT(name)), #name));
    PROGRAM_FUNCTIONS(PROGRAM_LOOK_UP)
#undef PROGRAM_LOOK_UP
    return api;
  }
  if (how == "dlvsym") {
#define PROGRAM_LOOK_UP(name)                        \
  api.name##_ = reinterpret_cast<decltype(&::name)>( \
      Require(dlvsym(driver, SYMBOL_TEXT(name), "FAKE_CUDA"), #name));
    PROGRAM_FUNCTIONS(PROGRAM_LOOK_UP)
#undef PROGRAM_LOOK_UP
    return api;
  }
  const cuuint64_t flags = how == "thread" ? 2 : 0;
  auto get =
      reinterpret_cast<GetProcAddress>(dlsym(driver, "cuGetProcAddress_v2"));
  // As the CUDA runtime does: that function, from itself.
  void* own = nullptr;
  get("cuGetProcAddress", &own, 12000, flags, nullptr);
  get = reinterpret_cast<GetProcAddress>(Require(own, "cuGetProcAddress"));
  const auto find = [&](const char* name) {
    void* found = nullptr;
    CUdriverProcAddressQueryResult status{};
    // The versions that the CUDA runtime 13.0 asks for.
    const bool old = std::strncmp(name, "cuDevicePrimaryCtx", 18) == 0;
    get(name, &found, old ? 7000 : 12040, flags, &status);
    return Require(found, name);
  };
#define PROGRAM_ASK(name) \
  api.name##_ = reinterpret_cast<decltype(&::name)>(find(#name));
  PROGRAM_FUNCTIONS(PROGRAM_ASK)
#undef PROGRAM_ASK
  return api;
}
