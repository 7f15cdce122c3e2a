#include "tests/cli/real_broker.h"

#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>
#include <utility>

#include "absl/time/clock.h"

namespace gmb::cli {

std::vector<std::string> RealBroker::DeviceFlags() const {
  return {"--device", "host:64MiB"};
}

std::string RealBroker::Config() const {
  return "tenants:\n"
         "  - {name: a, guarantee: 25%, limit: 50%}\n"
         "  - {name: b, guarantee: 25%, limit: 100%}\n";
}

void RealBroker::SetUp() {
  ASSERT_TRUE(dir_.ok()) << dir_.status();
  absl::StatusOr<std::unique_ptr<BrokerProcess>> broker =
      BrokerProcess::Start({.program = GMBD_PROGRAM,
                            .device_flags = DeviceFlags(),
                            .config = Config(),
                            .dir = dir_->path()});
  ASSERT_TRUE(broker.ok()) << broker.status();
  broker_ = *std::move(broker);
}

Said RealBroker::Gmb(std::vector<std::string> arguments) const {
  arguments.insert(arguments.end(), {"--socket-dir", broker_->socket_dir()});
  std::ostringstream out;
  std::ostringstream err;
  const ExitCode code = cli::Run(arguments, Terminal(), out, err);
  return {code, out.str(), err.str()};
}

absl::StatusOr<ChildProcess> RealBroker::Start(
    const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), GMB_PROGRAM);
  arguments.insert(arguments.end(), {"--socket-dir", broker_->socket_dir()});
  return ChildProcess::Start(
      {.command = arguments, .log_path = dir_->path() + "/" + name});
}

std::string RealBroker::LogOf(const std::string& name) const {
  std::ifstream file(dir_->path() + "/" + name);
  return {std::istreambuf_iterator<char>(file), {}};
}

void RealBroker::AwaitJson(
    const std::vector<std::string>& arguments,
    const std::function<bool(const Json&)>& holds) const {
  std::vector<std::string> with_json = arguments;
  with_json.insert(with_json.end(), {"--output", "json"});
  const absl::Time deadline = absl::Now() + absl::Seconds(30);
  Said said{};
  while (absl::Now() < deadline) {
    said = Gmb(with_json);
    ASSERT_EQ(said.code, ExitCode::kOk) << said.err;
    if (holds(said.json())) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  FAIL() << "did not come about: " << said.out;
}

}  // namespace gmb::cli
