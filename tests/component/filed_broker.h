#ifndef GMB_TESTS_COMPONENT_FILED_BROKER_H_
#define GMB_TESTS_COMPONENT_FILED_BROKER_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "tests/broker/temp_directory.h"
#include "tests/component/gmbd_process.h"

namespace gmb {

// A real broker with a configuration file, which may be started again.
class FiledBrokerTest : public testing::Test {
 protected:
  void Write(const std::string& text) const {
    std::ofstream(directory_ / "gmb.yaml") << text;
  }
  void Start(const std::string& file = "") {
    Launch(file);
    ASSERT_TRUE(gmbd_->WaitForLog(" serving ")) << gmbd_->log();
  }
  std::vector<std::string> Arguments(const std::string& file = "") const {
    return {"--device",     device_,
            "--socket-dir", directory_ / "run",
            "--state-dir",  directory_ / "state",
            "--config",     file.empty() ? directory_ / "gmb.yaml" : file};
  }
  // Without waiting for it to serve.
  void Launch(const std::string& file = "") {
    Stop();
    gmbd_ = std::make_unique<GmbdProcess>(Arguments(file));
    seen_ = 0;
  }
  void Stop() {
    if (gmbd_ == nullptr) return;
    gmbd_->Signal(SIGTERM);
    EXPECT_EQ(gmbd_->WaitForExit(), 0) << gmbd_->log();
    gmbd_ = nullptr;
  }
  void TearDown() override { Stop(); }

  // The lines that the broker logs from here on, until it has logged `event`.
  std::string LogUntil(const std::string& event) {
    // WaitForLog finds what was logged before, so each is counted.
    const std::string word = " " + event + " ";
    const size_t from = seen_;
    while (gmbd_->log().find(word, from) == std::string::npos) {
      if (!gmbd_->ReadMore()) {
        ADD_FAILURE() << "no " << event << ": " << gmbd_->log().substr(from);
        return "";
      }
    }
    const size_t found = gmbd_->log().find(word, from);
    while (gmbd_->log().find('\n', found) == std::string::npos) {
      if (!gmbd_->ReadMore()) break;
    }
    const size_t end = gmbd_->log().find('\n', found);
    seen_ = end == std::string::npos ? gmbd_->log().size() : end + 1;
    return gmbd_->log().substr(from, seen_ - from);
  }

  CommandResult Gmb(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--socket-dir", directory_ / "run"});
    return RunGmb(words);
  }
  // One that has to succeed.
  std::string Run(const std::vector<std::string>& words) const {
    const CommandResult result = Gmb(words);
    EXPECT_EQ(result.exit_code, 0) << result.output;
    return result.output;
  }

  std::string device_ = "host:256MiB";
  const broker::TempDirectory directory_;
  std::unique_ptr<GmbdProcess> gmbd_;
  size_t seen_ = 0;
};

}  // namespace gmb

#endif  // GMB_TESTS_COMPONENT_FILED_BROKER_H_
