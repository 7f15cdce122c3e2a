#include "client/preload/known_functions.h"

#include <cstring>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "client/preload/gated.h"
#include "client/preload/ungated_functions.h"
#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

std::set<std::string> Ungated() {
  std::set<std::string> names;
  for (const char* name = kUngatedFunctions; *name != '\0';
       name += std::strlen(name) + 1) {
    names.insert(name);
  }
  return names;
}

TEST(KnownFunctionsTest, EachIsListedOnceInOrderAndIsNotGated) {
  std::string before;
  for (const char* name = kUngatedFunctions; *name != '\0';
       name += std::strlen(name) + 1) {
    EXPECT_LT(before, name);
    EXPECT_TRUE(IsNameOfDriver(name)) << name;
    EXPECT_TRUE(IsKnownSymbol(name)) << name;
    EXPECT_EQ(FindGatedBySymbol(name), nullptr) << name;
    before = name;
  }
  EXPECT_EQ(std::next(std::end(kUngatedFunctions), -2)[0], '\0');
  EXPECT_GE(Ungated().size(), 450U);
}

TEST(KnownFunctionsTest, EachFormOfAFunctionIsOneOfItsOwn) {
  for (const char* const known :
       {"cuInit", "cuMemcpyHtoD_v2", "cuMemcpyHtoD", "cuEventRecord_ptsz"}) {
    EXPECT_TRUE(IsKnownSymbol(known)) << known;
  }
  for (const char* const unknown :
       {"cuMemcpyHtoD_v3", "cuEventRecord_v9", "cuFutureLaunch", "cuIni",
        "cuInitialise", "", "cu"}) {
    EXPECT_FALSE(IsKnownSymbol(unknown)) << unknown;
  }
}

TEST(KnownFunctionsTest, ANewerFormIsToldFromAnUnknownFunction) {
  for (const char* const form :
       {"cuMemcpyHtoD_v3", "cuEventRecord_v9", "cuMemAlloc", "cuMemAlloc_v9",
        "cuLaunchHostFunc_v2"}) {
    EXPECT_TRUE(IsFormOfKnown(form)) << form;
  }
  for (const char* const unknown : {"cuFutureLaunch", "cuMemAllo", "cu", ""})
    EXPECT_FALSE(IsFormOfKnown(unknown)) << unknown;
}

TEST(KnownFunctionsTest, NamesOfOthersAreNotTheDrivers) {
  for (const char* const name : {"cudaMalloc", "cublasCreate_v2", "cudbgGetAPI",
                                 "cu", "c", "", "cu_X", "CuInit"}) {
    EXPECT_FALSE(IsNameOfDriver(name)) << name;
  }
}

#ifdef CUDA_HEADERS
std::string Read(const std::string& header) {
  std::ifstream file(std::string(CUDA_HEADERS) + "/" + header);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Plain names, and those of versions that are declared beside them.
TEST(KnownFunctionsTest, AllThatTheHeadersDeclareIsKnown) {
  const std::string driver = Read("cuda.h");
  std::smatch version;
  ASSERT_TRUE(std::regex_search(driver, version,
                                std::regex(R"(define CUDA_VERSION (\d+))")));
  if (std::stoi(version[1]) > 13000)
    GTEST_SKIP() << "cuda.h is newer than the list";
  size_t declared = 0;
  for (const std::string& text :
       {driver, Read("cudaGL.h"), Read("cudaEGL.h"), Read("cudaVDPAU.h"),
        Read("cudaProfiler.h")}) {
    const std::regex function(R"(CUresult\s+CUDAAPI\s+(cu[A-Z]\w*)\s*\()");
    for (std::sregex_iterator at(text.begin(), text.end(), function), end;
         at != end; ++at) {
      const std::string name = (*at)[1];
      if (name == "cuWGLGetDevice") continue;  // of Windows
      EXPECT_TRUE(IsKnownSymbol(name.c_str())) << name;
      ++declared;
    }
  }
  EXPECT_GE(declared, 400U);
}
#endif

}  // namespace
}  // namespace gmb::preload
