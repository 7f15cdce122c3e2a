// A broker that has an fd less each time, at every step of what it does: calls
// are refused, sessions and contents stay, and nothing is left open.
#include <sys/resource.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "tests/component/component_test.h"

namespace gmb::component {
namespace {

constexpr uint64_t kOwned = 24 * kMiB;
// As ExpectServed writes, which may get the same memory again.
constexpr int kWritten = 0x5A;
constexpr uint64_t kOthers = 56 * kMiB;  // do not fit beside each other
constexpr absl::Duration kShort = absl::Seconds(1);
constexpr absl::Duration kLong = absl::Seconds(60);

class OpenFilesTest : public ComponentTest {
 protected:
  void SetUp() override {
    if (GMB_INSTRUMENTED)
      GTEST_SKIP()
          << "UBSan opens a pipe to look at an object's type, and ends "
             "the process where it cannot";
    BrokerOptions options;
    options.devices = {"host:64MiB"};
    options.flags = {"--host-pool=32MiB"};
    StartBroker(options);
    MakeTenant("owner");
    MakeTenant("other");
    ExpectServed("other");
  }

  void Limit(rlim_t files) {
    rlimit limit{};
    const pid_t pid = broker().program().pid();
    ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, nullptr, &limit), 0);
    limit.rlim_cur = std::min(files, limit.rlim_max);
    ASSERT_EQ(::prlimit(pid, RLIMIT_NOFILE, &limit, nullptr), 0);
  }
  // The limit with which so many more can be opened.
  [[nodiscard]] rlim_t LimitForMore(size_t more) {
    const std::string fds =
        absl::StrCat("/proc/", broker().program().pid(), "/fd");
    std::set<rlim_t> open;
    for (const auto& fd : std::filesystem::directory_iterator(fds))
      open.insert(std::strtoull(fd.path().filename().c_str(), nullptr, 10));
    rlim_t limit = 0;
    for (; more > 0 || open.contains(limit); ++limit)
      more -= open.contains(limit) ? 0 : 1;
    return limit;
  }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<Client>> Connect(
      const std::string& tenant) const {
    ClientOptions options = OptionsFor(TenantDir(tenant));
    options.connect_timeout = kShort;
    options.answer_timeout = kShort;
    return Client::Connect(options);
  }
  static GateOptions ParkAtOnce() {
    GateOptions options;
    options.park_after = absl::ZeroDuration();
    return options;
  }

  // A tenant leases, is evicted, and comes back, with so many fds more than
  // there are. Whether none was missing.
  bool Live(size_t more) {
    Limit(LimitForMore(more));
    v1::SetTenantRequest change;
    change.set_name("other");
    change.set_weight(static_cast<double>(more + 1));
    bool whole = SetTenant(change).ok();
    auto owner = Connect("owner");
    whole &= owner.ok();
    Lease lease;
    if (owner.ok() && (*owner)->TurnGateOn(ParkAtOnce()).ok()) {
      auto acquired = (*owner)->Acquire(kOwned, WaitFor(kShort));
      if (acquired.ok()) {
        lease = *std::move(acquired);
        std::memset(lease.data(), kWritten, lease.size_bytes());
      }
    }
    whole &= lease.data() != nullptr;
    if (auto other = Connect("other"); other.ok()) {
      whole &= (*other)->Acquire(kOthers, WaitFor(kShort)).ok();
    } else {
      whole = false;
    }
    if (lease.data() != nullptr) whole &= (*owner)->Enter(kShort).ok();
    Limit(RLIM_INFINITY);
    if (lease.data() != nullptr) {
      const auto scope = (*owner)->Enter(kLong);
      EXPECT_TRUE(scope.ok()) << scope.status();
      EXPECT_TRUE(scope.ok() && Holds(lease, kWritten))
          << "its contents are lost";
    }
    return whole;
  }

 private:
  static bool Holds(const Lease& lease, int value) {
    const auto* const bytes = static_cast<const unsigned char*>(lease.data());
    return bytes[0] == value &&
           std::memcmp(bytes, bytes + 1, lease.size_bytes() - 1) == 0;
  }
};

TEST_F(OpenFilesTest, NoneIsLeftAtEachStepAndNothingIsLost) {
  constexpr size_t kMost = 64;
  ASSERT_TRUE(Await([&] { return Status().sessions() == 0; }));
  const Footprint before = Settle();
  size_t more = 0;
  while (!Live(more) && more < kMost && !HasFailure()) {
    SCOPED_TRACE(absl::StrCat(more, " fds more"));
    ExpectBackTo(before);
    ++more;
  }
  EXPECT_GT(more, 4U);
  EXPECT_LT(more, kMost) << "it is never served";
  ExpectServed("owner");
  ExpectBackTo(before);
}

}  // namespace
}  // namespace gmb::component
