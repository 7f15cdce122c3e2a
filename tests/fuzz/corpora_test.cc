// Each file of each corpus, given to its target once more: what was found once
// is not found again.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/fuzz/targets.h"

namespace gmb::fuzz {
namespace {

struct Target {
  const char* name;
  void (*run)(Bytes bytes);
};
void PrintTo(const Target& target, std::ostream* out) { *out << target.name; }

// The file that a target's last words name when it aborts.
std::string now_replayed;
void SayWhich(int /*signal*/) {
  (void)!::write(STDERR_FILENO, now_replayed.data(), now_replayed.size());
}

class CorporaTest : public testing::TestWithParam<Target> {};

TEST_P(CorporaTest, NothingIsFoundInItAgain) {
  std::signal(SIGABRT, SayWhich);
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder =
      std::filesystem::path(GMB_CORPORA) / GetParam().name;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  ASSERT_FALSE(files.empty()) << folder;
  for (const std::filesystem::path& path : files) {
    now_replayed = "while it replayed " + path.string() + "\n";
    std::ifstream file(path, std::ios::binary);
    ASSERT_TRUE(file.good()) << path;
    const std::vector<char> bytes{std::istreambuf_iterator<char>(file), {}};
    GetParam().run(
        {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Each, CorporaTest,
    testing::Values(Target{"admin", FuzzAdmin}, Target{"config", FuzzConfig},
                    Target{"frames", FuzzFrames}, Target{"gate", FuzzGate},
                    Target{"greeting", FuzzGreeting},
                    Target{"keeper_answers", FuzzKeeperAnswers},
                    Target{"keeper_questions", FuzzKeeperQuestions},
                    Target{"machine", FuzzMachine}, Target{"quota", FuzzQuota},
                    Target{"records", FuzzRecords}, Target{"relay", FuzzRelay},
                    Target{"session", FuzzSession}, Target{"store", FuzzStore}),
    [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace gmb::fuzz
