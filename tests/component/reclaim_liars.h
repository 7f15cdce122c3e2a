#ifndef GMB_TESTS_COMPONENT_RECLAIM_LIARS_H_
#define GMB_TESTS_COMPONENT_RECLAIM_LIARS_H_

#include <cstdint>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tests/component/component_test.h"
#include "tests/component/reclaim_liar.h"

namespace gmb::component {

// A broker with tenants "liar", "waiting" and "bystander". The bystander holds
// bytes throughout, which are looked at in the end; then new sessions are
// served and nothing is left behind.
class ReclaimLiarsTest : public ComponentTest {
 protected:
  static constexpr absl::Duration kLong = absl::Seconds(60);
  // Of a pool of 64 MiB, of which the bystander has 4.
  static constexpr uint64_t kLiarBytes = 40 * kMiB;
  static constexpr uint64_t kWaitingBytes = 32 * kMiB;
  static constexpr uint64_t kLeftBytes = 16 * kMiB;  // fits beside the liar's

  void SetUp() override;
  void TearDown() override;

  [[nodiscard]] std::unique_ptr<Liar> OpenLiar() const;
  // With a lease of kLiarBytes and its gate on, and parked.
  [[nodiscard]] std::unique_ptr<Liar> OpenParked(uint64_t* lease) const;
  void GuaranteeToWaiting(uint64_t bytes) { MakeTenant("waiting", bytes); }
  void LetTerminate(const std::string& tenant);

  // Asks for kWaitingBytes as "waiting", on a thread of its own; what it got is
  // looked at, written, and given back.
  [[nodiscard]] std::future<absl::Status> Wait(absl::Duration wait = kLong);
  [[nodiscard]] absl::Status Take(uint64_t bytes, absl::Duration wait) const;

  [[nodiscard]] std::optional<v1::SessionInfo> Session(uint64_t id) const;
  [[nodiscard]] std::optional<v1::LeaseInfo> LeaseOf(uint64_t id) const;
  [[nodiscard]] bool AwaitState(uint64_t lease,
                                v1::LeaseInfo::State state) const;
  // The broker's events, from now on.
  Program& watch() { return *watch_; }

 private:
  Footprint before_;
  std::unique_ptr<Client> bystander_;
  Lease whole_;
  std::unique_ptr<Program> watch_;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_RECLAIM_LIARS_H_
