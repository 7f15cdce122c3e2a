#ifndef GMB_TESTS_CLI_REAL_BROKER_H_
#define GMB_TESTS_CLI_REAL_BROKER_H_

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/child_process.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/text/json.h"
#include "gtest/gtest.h"

namespace gmb::cli {

// The output of a run of the command.
struct Said {
  ExitCode code;
  std::string out;
  std::string err;

  [[nodiscard]] Json json() const { return Json::parse(out); }
};

// A real gmbd on host memory with the tenants a (25% to 50%) and b (25% to
// 100%) in a pool of 64 MiB, unless a test wants others, and the gmb command,
// run in this process or as a process of its own.
class RealBroker : public ::testing::Test {
 protected:
  void SetUp() override;
  [[nodiscard]] virtual std::vector<std::string> DeviceFlags() const;
  [[nodiscard]] virtual std::string Config() const;

  // In this process.
  Said Gmb(std::vector<std::string> arguments) const;
  // Of its own; what it says goes to LogOf(name).
  absl::StatusOr<ChildProcess> Start(const std::string& name,
                                     std::vector<std::string> arguments);
  [[nodiscard]] std::string LogOf(const std::string& name) const;
  // Looks until the broker, asked by `arguments`, answers what `holds` wants.
  void AwaitJson(const std::vector<std::string>& arguments,
                 const std::function<bool(const Json&)>& holds) const;

  absl::StatusOr<TempDir> dir_ = TempDir::Make();
  std::unique_ptr<BrokerProcess> broker_;
};

}  // namespace gmb::cli

#endif  // GMB_TESTS_CLI_REAL_BROKER_H_
