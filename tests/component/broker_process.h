#ifndef GMB_TESTS_COMPONENT_BROKER_PROCESS_H_
#define GMB_TESTS_COMPONENT_BROKER_PROCESS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/cli/admin_client.h"
#include "tests/component/program.h"

namespace gmb::component {

// Sanitizers keep freed memory back, so that its amount says nothing.
inline constexpr bool kInstrumented = GMB_INSTRUMENTED;

struct BrokerOptions {
  std::vector<std::string> devices = {"host:256MiB"};
  std::string reuse_for = "20ms";  // so that a footprint settles soon
  std::string drain_deadline = "5s";
  std::vector<std::string> flags;  // besides what is here
  std::string config;              // YAML; empty: no file
  // A command that runs gmbd: {"sh", "-c", "ulimit ...; exec \"$@\"", "sh"}.
  std::vector<std::string> wrapper;
};

// A real gmbd, with its sockets, state and log below one directory.
class BrokerProcess {
 public:
  BrokerProcess(const std::string& directory, const BrokerOptions& options);

  // Until an operator's call is answered: that operator. Null when gmbd ends
  // before, or does not get there.
  [[nodiscard]] std::unique_ptr<cli::AdminClient> AwaitServing();

  [[nodiscard]] Program& program() { return program_; }
  [[nodiscard]] std::string Log() const { return program_.Err(); }
  [[nodiscard]] const std::string& socket_dir() const { return socket_dir_; }
  [[nodiscard]] size_t OpenFds() const;
  // Their names, a line each.
  [[nodiscard]] std::string FdNames() const;
  [[nodiscard]] uint64_t ResidentBytes() const;

 private:
  const std::string socket_dir_;
  Program program_;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_BROKER_PROCESS_H_
