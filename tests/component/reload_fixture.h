#ifndef GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_
#define GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <cstddef>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "tests/broker/temp_directory.h"
#include "tests/component/gmbd_process.h"

namespace gmb {

// A real broker, whose configuration file is edited while it serves.
class ReloadTest : public testing::Test {
 protected:
  void Write(const std::string& text) const {
    std::ofstream(directory_ / "gmb.yaml") << text;
  }
  void Start(const std::string& file = "") {
    Launch(file);
    ASSERT_TRUE(gmbd_->WaitForLog(" serving ")) << gmbd_->log();
  }
  // Without waiting for it to serve.
  void Launch(const std::string& file = "") {
    Stop();
    gmbd_ = std::make_unique<GmbdProcess>(std::vector<std::string>{
        "--device", "host:256MiB", "--socket-dir", directory_ / "run",
        "--state-dir", directory_ / "state", "--config",
        file.empty() ? directory_ / "gmb.yaml" : file});
    seen_ = 0;
  }
  void Stop() {
    if (gmbd_ == nullptr) return;
    gmbd_->Signal(SIGTERM);
    EXPECT_EQ(gmbd_->WaitForExit(), 0) << gmbd_->log();
    gmbd_ = nullptr;
  }
  void TearDown() override { Stop(); }

  // What the broker logs from here on, until it has logged `event`.
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
  std::string Reload(const std::string& event = "reloaded") {
    gmbd_->Signal(SIGHUP);
    return LogUntil(event);
  }
  std::string Reload(const std::string& text, const std::string& event) {
    Write(text);
    return Reload(event);
  }

  CommandResult Gmb(std::vector<std::string> words) const {
    words.insert(words.begin(), {"--socket-dir", directory_ / "run"});
    return RunGmb(words);
  }
  // Not as a table, which breaks lines.
  std::string Doctor() const {
    return Gmb({"doctor", "--output", "json"}).output;
  }
  std::string Tenant(const std::string& name) const {
    return Gmb({"tenant", "get", name}).output;
  }
  std::unique_ptr<Client> Connect(const std::string& tenant) const {
    ClientOptions options;
    options.socket_dir = directory_ / ("run/tenants/" + tenant);
    auto client = Client::Connect(options);
    EXPECT_TRUE(client.ok()) << client.status();
    return client.ok() ? *std::move(client) : nullptr;
  }
  absl::Status ConnectWithToken(const std::string& token) const {
    ClientOptions options;
    options.socket_dir = directory_ / "run";
    options.tenant_token = token;
    return Client::Connect(options).status();
  }

  const broker::TempDirectory directory_;
  std::unique_ptr<GmbdProcess> gmbd_;
  size_t seen_ = 0;
};

}  // namespace gmb

#endif  // GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_
