#include "client/preload/loaded_library.h"

#include <dlfcn.h>

#include <cstring>

#include "client/preload/find_symbol.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

struct Asked {
  const char* library;
  const char* name;
  void* found = nullptr;
};

void* FindIn(const char* library, const char* name) {
  Asked asked{library, name};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* const search = static_cast<Asked*>(data);
        if (std::strstr(info->dlpi_name, search->library) == nullptr) return 0;
        search->found = LoadedLibrary(*info).Find(search->name);
        return 1;
      },
      &asked);
  return asked.found;
}

TEST(LoadedLibraryTest, WhatItExportsIsFoundAsTheLoaderFindsIt) {
  void* const library = dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  for (const char* const name : {"dlvsym", "dlopen", "fopen", "getpid"}) {
    ASSERT_NE(dlsym(library, name), nullptr) << name;
    EXPECT_EQ(FindIn("/libc.so", name), dlsym(library, name)) << name;
  }
  for (const char* const name : {"cuInit", "dlvsy", "dlvsymm", "", "environ"})
    EXPECT_EQ(FindIn("/libc.so", name), nullptr) << name;
}

TEST(FindSymbolTest, TheLookupsAreTheLoadersOwn) {
  EXPECT_EQ(RealDlvsym()(RTLD_DEFAULT, "dlvsym", "GLIBC_2.34"),
            reinterpret_cast<void*>(RealDlvsym()));
  EXPECT_EQ(RealDlsym()(RTLD_DEFAULT, "getpid"), dlsym(RTLD_DEFAULT, "getpid"));
}

}  // namespace
}  // namespace gmb::preload
