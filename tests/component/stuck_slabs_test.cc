// A tenant with rights that the broker lacks keeps it from finding out who
// holds a slab: it is said, and costs that tenant alone.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using Words = std::vector<std::string>;

constexpr uid_t kBroker = 65534;
constexpr uint64_t kBytes = 16 * kMiB;

// A lease of a session that is spoken by hand, whose slabs it keeps open.
class Holder {
 public:
  Holder(const std::string& tenant_dir, uint64_t bytes)
      : session_(RawSession::Open(tenant_dir).value()),
        stream_(session_->OpenStream(tenant_dir)) {
    EXPECT_TRUE(stream_->Send(AcquireMessage(1, bytes)));
    const absl::StatusOr<v1::Slabs> slabs = session_->TakeSlabs(&slabs_);
    EXPECT_TRUE(slabs.ok()) << slabs.status();
    if (!slabs.ok()) return;
    EXPECT_EQ(slabs_.size(), slabs->slabs_in_lease());
    lease_ = slabs->lease_id();
    EXPECT_TRUE(stream_->ReceiveAnswer(1).has_value());
  }

  // To the broker, not to the device.
  void Release() const {
    EXPECT_TRUE(stream_->Send(ReleaseMessage(2, lease_)));
    EXPECT_TRUE(stream_->ReceiveAnswer(2).has_value());
  }
  void EndSession() {
    stream_.reset();
    session_.reset();
  }
  // As a program may that was given rights over other users' files.
  void GiveSlabsTo(uid_t owner) const {
    for (const base::UniqueFd& slab : slabs_)
      EXPECT_EQ(fchown(slab.get(), owner, static_cast<gid_t>(-1)), 0);
  }
  void CloseSlabs() { slabs_.clear(); }

 private:
  std::optional<RawSession> session_;
  std::unique_ptr<RawStream> stream_;
  std::vector<base::UniqueFd> slabs_;
  uint64_t lease_ = 0;
};

class StuckSlabsTest : public ComponentTest {
 protected:
  [[nodiscard]] static Words AsOrdinaryUser() {
    return {"setpriv", absl::StrCat("--reuid=", kBroker),
            absl::StrCat("--regid=", kBroker), "--clear-groups"};
  }
  // Whether an ordinary user's gmbd can be tried here.
  [[nodiscard]] bool CanDropRights() const {
    Words words = AsOrdinaryUser();
    words.insert(words.end(), {"test", "-x", GMBD_PROGRAM});
    return geteuid() == 0 &&
           Program(Directory(), "probe", words).AwaitExit() == 0;
  }
  void StartBrokerOfOrdinaryUser() {
    ASSERT_EQ(chown(Directory().c_str(), kBroker, kBroker), 0);
    BrokerOptions options;
    options.wrapper = AsOrdinaryUser();
    StartBroker(options);
  }
  // Of the log.
  [[nodiscard]] Words StuckLines() {
    Words lines;
    for (const absl::string_view line : absl::StrSplit(broker().Log(), '\n')) {
      if (absl::StrContains(line, "unreturned_stuck")) lines.emplace_back(line);
    }
    return lines;
  }
  // Of the tenant on the one device.
  [[nodiscard]] uint64_t UnreturnedOf(const std::string& name) const {
    const auto tenants = admin().ListTenants(v1::ListTenantsRequest());
    if (!tenants.ok()) return ~uint64_t{0};
    for (const v1::Tenant& tenant : tenants->tenants()) {
      if (tenant.name() == name)
        return tenant.pools(0).view().unreturned_bytes();
    }
    return ~uint64_t{0};
  }
};

TEST_F(StuckSlabsTest, HoldUpNobodyElsesAndAreReportedUntilTheyAreBack) {
  if (!CanDropRights())
    GTEST_SKIP() << "needs root, and setpriv to start gmbd as another user";
  StartBrokerOfOrdinaryUser();
  MakeTenant("other");  // the first to be paid for by a rise
  MakeTenant("thief");
  Holder thief(TenantDir("thief"), kBytes);
  Holder other(TenantDir("other"), kBytes);
  thief.GiveSlabsTo(0);
  thief.Release();
  other.Release();
  EXPECT_TRUE(Await([&] { return Pool().unreturned_bytes() == 2 * kBytes; }));
  thief.CloseSlabs();
  other.CloseSlabs();
  EXPECT_TRUE(Await([&] { return UnreturnedOf("other") == 0; }))
      << UnreturnedOf("other");
  EXPECT_EQ(UnreturnedOf("thief"), kBytes);
  EXPECT_EQ(Pool().missing_bytes(), 0U);
  // All that is not the thief's can be leased.
  Holder all(TenantDir("other"), Pool().capacity_bytes() - kBytes);
  all.Release();
  all.CloseSlabs();

  const Said doctor = Gmb({"doctor", "--output", "json"});
  EXPECT_EQ(doctor.exit_code, 1);
  EXPECT_THAT(doctor.out, HasSubstr("tenant thief: 16.0 MiB"));
  EXPECT_THAT(Gmb({"why", "thief"}).out, HasSubstr("16.0 MiB were released"));
  EXPECT_EQ(StuckLines().size(), 1);
  EXPECT_THAT(StuckLines(),
              Each(AllOf(HasSubstr("warning"), HasSubstr("tenant=thief"),
                         AnyOf(HasSubstr("device=host-0 bytes=8388608 "),
                               HasSubstr("device=host-0 bytes=16777216 ")))))
      << "one slab or both, as they are destroyed in one step or two";

  // It says what to do, and that helps.
  std::smatch command;
  ASSERT_TRUE(std::regex_search(doctor.out, command,
                                std::regex("`(find /proc/[^`]*)`")))
      << doctor.out;
  EXPECT_EQ(std::system(command.str(1).c_str()), 0) << command.str(1);
  EXPECT_TRUE(Await([&] { return Pool().unreturned_bytes() == 0; }));
  EXPECT_THAT(Gmb({"doctor"}).out, Not(HasSubstr("tenant thief")));
}

// It is told whose they are, however small they are and however often.
TEST_F(StuckSlabsTest, TheSmallestSlabThatIsKeptIsChargedToItsTenant) {
  StartBroker();
  MakeTenant("small");
  std::vector<Holder> kept;
  for (uint64_t i = 1; i <= 3; ++i) {
    kept.emplace_back(TenantDir("small"), 2 * kMiB).Release();
    EXPECT_TRUE(Await([&] { return UnreturnedOf("small") == i * 2 * kMiB; }))
        << UnreturnedOf("small");
  }
  EXPECT_EQ(Pool().missing_bytes(), 0U);
  kept.clear();
  EXPECT_TRUE(Await([&] { return UnreturnedOf("small") == 0; }));
}

// A session that has ended can release nothing any more.
TEST_F(StuckSlabsTest, ATenantThatOnlyOwesCanBeDeleted) {
  StartBroker();
  MakeTenant("gone");
  Holder kept(TenantDir("gone"), kBytes);
  kept.Release();
  ASSERT_TRUE(Await([&] { return UnreturnedOf("gone") == kBytes; }));
  EXPECT_THAT(Gmb({"tenant", "delete", "gone"}).err,
              HasSubstr("live sessions"));
  kept.EndSession();
  ASSERT_TRUE(Await([&] {
    const Said said = Gmb({"tenant", "delete", "gone"});
    return said.exit_code == 0 || !absl::StrContains(said.err, "live session");
  }));
  EXPECT_TRUE(Await([&] { return Pool().missing_bytes() == kBytes; }));
  EXPECT_EQ(UnreturnedOf("gone"), ~uint64_t{0}) << "there is no such tenant";
  kept.CloseSlabs();
  EXPECT_TRUE(Await([&] { return Pool().missing_bytes() == 0; }));
}

}  // namespace
}  // namespace gmb::component
