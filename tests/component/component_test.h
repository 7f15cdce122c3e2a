#ifndef GMB_TESTS_COMPONENT_COMPONENT_TEST_H_
#define GMB_TESTS_COMPONENT_COMPONENT_TEST_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/admin_client.h"
#include "gmb/client.h"
#include "tests/component/await.h"
#include "tests/component/broker_process.h"
#include "tests/component/program.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::component {

inline constexpr uint64_t kMiB = uint64_t{1} << 20;

// Allocators keep some of what was freed.
inline constexpr uint64_t kKeptByAllocators = 64 * kMiB;

// All that clients make a broker hold. Once they are gone it has to be as
// before.
struct Footprint {
  size_t fds = 0;
  uint64_t sessions = 0;
  uint64_t leases = 0;
  uint64_t handles = 0;
  uint64_t granted_bytes = 0;
  uint64_t unreturned_bytes = 0;
  uint64_t missing_bytes = 0;
  uint64_t ready_bytes = 0;
  uint64_t waiting = 0;
  uint64_t resident_bytes = 0;  // of the process; 0 where sanitizers count, too

  friend bool operator==(const Footprint&, const Footprint&) = default;
};
std::ostream& operator<<(std::ostream& out, const Footprint& footprint);

[[nodiscard]] ClientOptions OptionsFor(const std::string& socket_dir);
[[nodiscard]] AcquireOptions WaitFor(absl::Duration wait);

// The output of a run of the gmb command.
struct Said {
  int exit_code;
  std::string out;
  std::string err;
};

// The real gmbd in a directory of its own, an operator, and clients. At the end
// gmbd is stopped, and has to say that it stopped in order, and nothing of what
// sanitizers say.
class ComponentTest : public ::testing::Test {
 protected:
  void TearDown() override;

  // Waits until it serves; throws, which fails the test, when it does not.
  void StartBroker(const BrokerOptions& options = {});
  // With SIGTERM; it has to end in order. The end of the test does it, too.
  void StopBroker();
  void KillBroker();
  void ExpectTheBooksAddUp() const;
  BrokerProcess& broker() { return *broker_; }
  const cli::AdminClient& admin() const { return *admin_; }

  [[nodiscard]] const std::string& Directory() const {
    return directory_.path();
  }
  [[nodiscard]] std::string SocketDir() const { return directory_.File("run"); }
  [[nodiscard]] std::string TenantDir(const std::string& tenant) const {
    return SocketDir() + "/tenants/" + tenant;
  }

  // With a guarantee of nothing and the pool as its limit, or as given.
  void MakeTenant(const std::string& name, uint64_t guarantee_bytes = 0,
                  uint64_t limit_bytes = 0);
  absl::StatusOr<v1::SetTenantResponse> SetTenant(
      const v1::SetTenantRequest& request) const;
  [[nodiscard]] v1::GetStatusResponse Status() const;
  [[nodiscard]] v1::PoolStatus Pool() const { return Status().pools(0); }

  // A client of the tenant, through its directory; null (and a failure) when
  // the broker refuses.
  [[nodiscard]] std::unique_ptr<Client> ConnectAs(
      const std::string& tenant) const;
  // Leases, writes, reads and releases as a client of the tenant.
  void ExpectServed(const std::string& tenant) const;

  // The broker's, once its pool is refilled and nothing is on its way.
  [[nodiscard]] Footprint Settle();
  // Waits for it.
  void ExpectBackTo(const Footprint& before);

  // The gmb command on this broker.
  Said Gmb(std::vector<std::string> words) const;
  // The same while it runs.
  std::unique_ptr<Program> StartGmb(const std::string& name,
                                    std::vector<std::string> words) const;

 private:
  [[nodiscard]] Footprint Measure();

  const testing::TemporaryDirectory directory_;
  std::unique_ptr<BrokerProcess> broker_;
  std::unique_ptr<cli::AdminClient> admin_;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_COMPONENT_TEST_H_
