#include "broker/doors/admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "ipc/pidfd.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const Door kDoorOfA{.origin = Origin::kTenantDirectory, .tenant = "a"};
const Door kDoorOfB{.origin = Origin::kTenantDirectory, .tenant = "b"};
const Door kShared{};
constexpr PeerProcess kOne{.numbered = true, .number = 7};
constexpr PeerProcess kOther{.numbered = true, .number = 8};

TEST(AdmissionTest, KnowsAProcessAtTheDoorWhereItGreetedOnly) {
  Admission admission;
  admission.Add(1, kDoorOfA, kOne, "a");
  admission.Add(2, kDoorOfA, kOne, "a");
  admission.Add(3, kShared, kOther, "a");
  EXPECT_THAT(admission.SessionsOf(kDoorOfA, kOne), ElementsAre(1, 2));
  EXPECT_THAT(admission.SessionsOf(kDoorOfB, kOne), IsEmpty());
  EXPECT_THAT(admission.SessionsOf(kShared, kOne), IsEmpty());
  EXPECT_THAT(admission.SessionsOf(kDoorOfA, kOther), IsEmpty());
  EXPECT_EQ(admission.SessionCount(kShared, kOther), 1U);
  EXPECT_EQ(admission.TenantOf(kShared, kOther), "a");
  EXPECT_EQ(admission.TenantOf(kShared, kOne), "");
  EXPECT_EQ(admission.sessions(), 3U);
  // A pid is not a number, though they may be equal.
  EXPECT_THAT(admission.SessionsOf(kDoorOfA, {.numbered = false, .number = 7}),
              IsEmpty());
}

TEST(AdmissionTest, ForgetsAProcessWithItsLastSession) {
  Admission admission;
  admission.Add(1, kDoorOfA, kOne, "a");
  admission.Add(2, kDoorOfA, kOne, "a");
  admission.Remove(1);
  EXPECT_EQ(admission.SessionCount(kDoorOfA, kOne), 1U);
  admission.Remove(2);
  admission.Remove(2);
  EXPECT_EQ(admission.SessionCount(kDoorOfA, kOne), 0U);
  EXPECT_EQ(admission.sessions(), 0U);
}

TEST(AdmissionTest, TellsOfEverySession) {
  Admission admission;
  int told = 0;
  admission.SetOnAdd([&] { ++told; });
  admission.Add(1, kDoorOfA, kOne, "a");
  admission.Add(2, kDoorOfA, kOne, "a");
  EXPECT_EQ(told, 2);
}

TEST(AdmissionTest, APeerIsTheSameByItsConnectionAndByItsPidfd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()),
            0);
  const base::UniqueFd one(ends[0]);
  const base::UniqueFd two(ends[1]);
  const auto connected = ConnectedProcess(one.get());
  ASSERT_TRUE(connected.ok()) << connected.status();
  const auto pidfd = ipc::OpenPeerPidfd(one.get(), ::getpid());
  ASSERT_TRUE(pidfd.ok()) << pidfd.status();
  EXPECT_EQ(*connected, ProcessOf(&*pidfd, ::getpid()));
  if (!connected->numbered) {
    EXPECT_EQ(connected->number, static_cast<uint64_t>(::getpid()));
  }
  EXPECT_EQ(ProcessOf(nullptr, 42), (PeerProcess{false, 42}));
}

}  // namespace
}  // namespace gmb::broker
