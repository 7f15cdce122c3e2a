// Memory that a program maps itself is lent, and comes back to where it was.
#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

// `h` is several slabs, mapped at v and, to be read, at alias; `s` lies behind
// it, and at other.
class PreloadVirtualGateTest : public PreloadGateTest {
 protected:
  static constexpr int kInvalid = 1;
  static constexpr uint64_t kLarge = kBytes - 2 * kMiB;
  static constexpr uint64_t kSmall = 2 * kMiB;
  static constexpr uint64_t kSpace = 256 * kMiB;

  static Words MappedAnd(const Words& more) {
    Words steps = {absl::StrCat("reserve v ", kSpace),
                   absl::StrCat("create h ", kLarge),
                   absl::StrCat("create s ", kSmall),
                   absl::StrCat("at w v ", kLarge),
                   absl::StrCat("at alias v ", 100 * kMiB),
                   absl::StrCat("at other v ", 200 * kMiB),
                   absl::StrCat("map h v ", kLarge),
                   absl::StrCat("map s w ", kSmall),
                   absl::StrCat("access v ", kBytes),
                   absl::StrCat("map h alias ", kLarge),
                   absl::StrCat("access alias ", kLarge, " read"),
                   absl::StrCat("map s other ", kSmall),
                   absl::StrCat("access other ", kSmall),
                   absl::StrCat("put v ", kLarge, " 3"),
                   absl::StrCat("put other ", kSmall, " 5")};
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  }
  [[nodiscard]] std::unique_ptr<Program> StartMapped(const Words& more) const {
    auto program =
        Start("program", {.steps = MappedAnd(more), .run_options = Soon()});
    EXPECT_TRUE(program->AwaitOut("put other 0")) << program->Err();
    return program;
  }
  // All of it has to go.
  [[nodiscard]] std::unique_ptr<Program> TakeAllOfTheDevice(
      const std::string& end) const {
    AwaitGate("a", v1::SessionInfo::GATE_PARKED);
    return TakeTheDevice(end, 512 * kMiB);
  }
};

TEST_F(PreloadVirtualGateTest, QuestionsAboutItsAddressesWakeNobody) {
  const std::string answer = "ask v 0 0 2 1\nask alias 0 0 2 1\n";
  const auto program =
      StartMapped({"ask v", "ask alias", Await("ask"), "ask v", "ask alias",
                   Await("end"), absl::StrCat("get v ", kLarge)});
  ASSERT_TRUE(program->AwaitOut(answer)) << program->Out();
  const auto other = TakeAllOfTheDevice("other-ends");
  Touch("ask");
  ASSERT_TRUE(program->AwaitOut(answer + answer)) << program->Out();
  EXPECT_EQ(Evicted(), kBytes);
  for (const char* const file : {"other-ends", "end"}) Touch(file);
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("get v 0 ", 3 * kLarge)));
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

TEST_F(PreloadVirtualGateTest, EachAddressComesBackWithItsAccess) {
  const auto program = StartMapped(
      {Await("first"), absl::StrCat("get alias ", kLarge),
       absl::StrCat("get w ", kSmall), "granted alias", "granted v",
       absl::StrCat("put other ", kSmall, " 6"), Await("second"),
       absl::StrCat("get v ", kLarge), absl::StrCat("get w ", kSmall),
       absl::StrCat("get other ", kSmall), "release h", "release s",
       absl::StrCat("unmap v ", kSpace), Await("end")});
  for (const char* const turn : {"first", "second"}) {
    const auto other = TakeAllOfTheDevice(absl::StrCat("before-", turn));
    Touch(absl::StrCat("before-", turn));
    EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
    Touch(turn);
  }
  ASSERT_TRUE(program->AwaitOut("unmap v")) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("get alias 0 ", 3 * kLarge, "\nget w 0 ",
                                     5 * kSmall, "\ngranted alias 0 1\n",
                                     "granted v 0 3\nput other 0\n")));
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat(
                                  "get v 0 ", 3 * kLarge, "\nget w 0 ",
                                  6 * kSmall, "\nget other 0 ", 6 * kSmall,
                                  "\nrelease h 0\nrelease s 0\nunmap v 0\n")));
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

// Of two places the driver unmaps only the first: that is mapped again, and the
// lease stays until the broker asks once more.
TEST_F(PreloadVirtualGateTest, WhatIsNotUnmappedEverywhereStaysMapped) {
  const auto program = StartMapped(
      {"refuse-unmap 2", Await("look"), "failed",
       absl::StrCat("get v ", kLarge), absl::StrCat("get alias ", kLarge),
       absl::StrCat("get w ", kSmall), absl::StrCat("get other ", kSmall)});
  ASSERT_TRUE(program->AwaitOut("refuse-unmap\n")) << program->Err();
  const auto other = TakeAllOfTheDevice("other-ends");
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  Touch("look");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat(
                                  "failed cuMemUnmap\nget v 0 ", 3 * kLarge,
                                  "\nget alias 0 ", 3 * kLarge, "\nget w 0 ",
                                  5 * kSmall, "\nget other 0 ", 5 * kSmall)));
}

// A call that asks, or gives back, does not bring the rest back.
TEST_F(PreloadVirtualGateTest, AskingAndGivingBackWakeNobody) {
  const auto program = StartMapped(
      {Await("ask"), "range alias 5", "granted alias", "retain again w",
       "same-handle again s", "release again", "properties h",
       absl::StrCat("unreserve v ", kSpace),
       absl::StrCat("unmap other ", kSmall), Await("give"),
       absl::StrCat("unmap w ", kSmall), "release s", Await("use"),
       absl::StrCat("get alias ", kLarge), "range w 0", Await("end")});
  const auto other = TakeAllOfTheDevice("other-ends");
  Touch("ask");
  ASSERT_TRUE(program->AwaitOut("unmap other 0")) << program->Err();
  EXPECT_THAT(
      program->Out(),
      HasSubstr(absl::StrCat("range alias 0 0 ", kLarge,
                             "\ngranted alias 0 1\nretain again 0\n",
                             "same-handle 1\nrelease again 0\n",
                             "properties h 0 0 0\nunreserve v ", kInvalid)));
  EXPECT_EQ(Evicted(), kBytes);
  Touch("give");
  ASSERT_TRUE(program->AwaitOut("unmap w 0\nrelease s 0")) << program->Err();
  ExpectLeases("a", {kLarge});
  EXPECT_EQ(Evicted(), kLarge);
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  Touch("use");
  ASSERT_TRUE(program->AwaitOut("range w")) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("get alias 0 ", 3 * kLarge,
                                                     "\nrange w ", kInvalid)));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);
}

TEST_F(PreloadVirtualGateTest, MappingWaitsForTheMemory) {
  const auto program = StartMapped(
      {Await("map"), absl::StrCat("at new v ", 210 * kMiB),
       absl::StrCat("map s new ", kSmall), absl::StrCat("access new ", kSmall),
       absl::StrCat("get new ", kSmall)});
  const auto other = TakeAllOfTheDevice("other-ends");
  Touch("map");
  EXPECT_TRUE(component::Await([&] { return Waiting() == 1; }));
  EXPECT_THAT(program->Out(), ::testing::Not(HasSubstr("access new")));
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(
      program->Out(),
      HasSubstr(absl::StrCat("map s 0\naccess new 0\nget new 0 ", 5 * kSmall)));
}

}  // namespace
}  // namespace gmb::component
