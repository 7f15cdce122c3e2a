#ifndef GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_
#define GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_

#include <gtest/gtest.h>
#include <signal.h>

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "tests/component/filed_broker.h"

namespace gmb {

// A real broker, whose configuration file is edited while it serves.
class ReloadTest : public FiledBrokerTest {
 protected:
  std::string Reload(const std::string& event = "reloaded") {
    gmbd_->Signal(SIGHUP);
    return LogUntil(event);
  }
  std::string Reload(const std::string& text, const std::string& event) {
    Write(text);
    return Reload(event);
  }

  CommandResult Apply(const std::string& tenants,
                      const std::vector<std::string>& options = {},
                      const std::string& name = "web") const {
    std::ofstream(directory_ / "apply.yaml") << "tenants: [" << tenants << "]";
    std::vector<std::string> words = {"apply", "-f", directory_ / "apply.yaml",
                                      "--name", name};
    words.insert(words.end(), options.begin(), options.end());
    return Gmb(words);
  }

  // Not as a table, which breaks lines.
  std::string Doctor() const {
    return Gmb({"doctor", "--output", "json"}).output;
  }
  std::string Tenant(const std::string& name) const {
    return Gmb({"tenant", "get", name}).output;
  }
  // The line that says what makes a process this tenant's.
  std::string KnownBy(const std::string& name) const {
    const std::string text = Tenant(name);
    const size_t from = text.find("known by: ");
    if (from == std::string::npos) return "";
    return text.substr(from, text.find('\n', from) - from);
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
};

}  // namespace gmb

#endif  // GMB_TESTS_COMPONENT_RELOAD_FIXTURE_H_
