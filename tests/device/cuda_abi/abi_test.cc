// Our own declarations of the driver's interface against cuda.h, where that is.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/device/cuda_abi/facts.h"

namespace gmb::test {
namespace {

namespace fs = std::filesystem;

// The files that declare something of the driver.
std::vector<fs::path> OurHeaders() {
  const fs::path root = GMB_SOURCE_DIR;
  std::vector<fs::path> files = {root / "client/preload/exported.h",
                                 root / "tests/device/driver_of_programs.h"};
  for (const auto& entry : fs::directory_iterator(root / "device/cuda/abi"))
    files.push_back(entry.path());
  return files;
}

// The names that a header's lines declare: a function, a type's name, a number.
std::set<std::string> NamesIn(const fs::path& file) {
  static const std::regex kDeclared(
      R"(CUresult (cu\w+)\(|using (CU\w+|cuuint64_t) =|)"
      R"(^  (CU\w+) = |#define (CU\w+) )");
  std::set<std::string> names;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::smatch found;
    if (!std::regex_search(line, found, kDeclared)) continue;
    for (size_t i = 1; i < found.size(); ++i)
      if (found[i].matched) names.insert(found[i]);
  }
  return names;
}

TEST(CudaAbiTest, OurDeclarationsSayWhatTheHeaderSays) {
  const Facts ours = OurFacts();
  const Facts header = HeaderFacts();
  if (header.empty()) GTEST_SKIP() << "cuda.h is older than CUDA 12.4";
  EXPECT_GE(header.size(), 200U);
  for (const auto& [name, fact] : header) {
    const auto found = ours.find(name);
    ASSERT_NE(found, ours.end()) << name;
    EXPECT_EQ(found->second, fact) << name;
  }
}

TEST(CudaAbiTest, NothingIsDeclaredThatIsNotCompared) {
  const Facts ours = OurFacts();
  size_t declared = 0;
  for (const fs::path& file : OurHeaders()) {
    for (const std::string& name : NamesIn(file)) {
      EXPECT_EQ(ours.count(name), 1U)
          << name << " of " << file << " is not in cuda_abi/names.h";
      ++declared;
    }
  }
  EXPECT_GE(declared, 200U);
}

}  // namespace
}  // namespace gmb::test
