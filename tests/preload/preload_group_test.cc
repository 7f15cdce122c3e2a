// Ranks of one model: their memory goes and comes back together.
#include <algorithm>
#include <set>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::HasSubstr;

class PreloadGroupTest : public PreloadGateTest {
 protected:
  // A rank with work on the GPU, until the file `done` is there; it reads, or
  // `goes_on` otherwise, once the file `goes` is there.
  // `group`: the words that name it.
  [[nodiscard]] std::unique_ptr<Program> Rank(
      const std::string& name, const Words& group = {"--group", "ranks"},
      const std::string& goes_on = absl::StrCat("get x ", kBytes)) const {
    ProgramRun run{
        .steps = {absl::StrCat("alloc x ", kBytes), "ranks 2", "work x 0",
                  Await(name + "-done"), "synchronize 0",
                  absl::StrCat("put x ", kBytes, " 3"), Await(name + "-goes"),
                  goes_on, Await(name + "-ends")},
        .run_options = Soon()};
    run.run_options.insert(run.run_options.end(), group.begin(), group.end());
    auto rank = Start(name, run);
    EXPECT_TRUE(rank->AwaitOut("work x 0")) << rank->Err();
    return rank;
  }
  [[nodiscard]] std::multiset<v1::SessionInfo::Gate> Gates() const {
    std::multiset<v1::SessionInfo::Gate> gates;
    for (const v1::SessionInfo& session : SessionsOfA())
      gates.insert(session.gate());
    return gates;
  }
  [[nodiscard]] uint64_t EvictedOfAll() const {
    uint64_t bytes = 0;
    for (const v1::SessionInfo& session : SessionsOfA())
      bytes += session.evicted_bytes();
    return bytes;
  }
  bool AwaitGates(const std::multiset<v1::SessionInfo::Gate>& gates) const {
    return component::Await([&] { return Gates() == gates; });
  }

 private:
  [[nodiscard]] std::vector<v1::SessionInfo> SessionsOfA() const {
    v1::ListSessionsRequest request;
    request.set_tenant("a");
    const auto sessions = admin().ListSessions(request);
    if (!sessions.ok()) return {};
    return {sessions->sessions().begin(), sessions->sessions().end()};
  }
};

TEST_F(PreloadGroupTest, RanksAreTakenAndComeBackTogetherOrNotAtAll) {
  const auto one = Rank("one");
  const auto two = Rank("two");
  Touch("one-done");
  // The other one has never been quiet, and its gate is off.
  ASSERT_TRUE(
      AwaitGates({v1::SessionInfo::GATE_OFF, v1::SessionInfo::GATE_PARKED}))
      << one->Err();
  // The first one's memory alone would do.
  const auto refused =
      Start("refused", {.steps = {absl::StrCat("alloc y ", 416 * kMiB)},
                        .run_options = {"--wait", "300ms"},
                        .tenant = "b"});
  EXPECT_EQ(refused->AwaitExit(), 0) << refused->Err();
  EXPECT_THAT(refused->Out(), HasSubstr("alloc y 2\n"));
  Touch("two-done");
  ASSERT_TRUE(
      AwaitGates({v1::SessionInfo::GATE_PARKED, v1::SessionInfo::GATE_PARKED}))
      << two->Err();
  const auto other =
      Start("other", {.steps = {absl::StrCat("alloc y ", kTakeBytes),
                                Await("back"), "free y", Await("other-ends")},
                      .run_options = {"--wait", "20s", "--no-park"},
                      .tenant = "b"});
  ASSERT_TRUE(other->AwaitOut("alloc y 0")) << other->Err();
  EXPECT_EQ(EvictedOfAll(), 2 * kBytes);
  Touch("back");
  ASSERT_TRUE(other->AwaitOut("free y 0")) << other->Err();
  Touch("one-goes");
  ASSERT_TRUE(one->AwaitOut(absl::StrCat("get x 0 ", 3 * kBytes)))
      << one->Err();
  EXPECT_EQ(EvictedOfAll(), 0u) << "the other rank is away";
  for (const char* const end : {"two-goes", "one-ends", "two-ends"}) Touch(end);
  Touch("other-ends");
  for (const auto& rank : {&one, &two}) {
    EXPECT_EQ((*rank)->AwaitExit(), 0) << (*rank)->Err();
    EXPECT_THAT((*rank)->Out(),
                HasSubstr(absl::StrCat("get x 0 ", 3 * kBytes)));
  }
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

// The second rank's kernel waits for the first one, as in a collective: so the
// first one goes on, however long a pause may last.
TEST_F(PreloadGroupTest, RanksAtWorkAreNotHeldUpByAPause) {
  const auto one = Rank("one");
  const auto two = Rank("two", {"--group", "ranks"}, "work x 0");
  for (const char* const file : {"one-done", "two-done"}) Touch(file);
  ASSERT_TRUE(
      AwaitGates({v1::SessionInfo::GATE_PARKED, v1::SessionInfo::GATE_PARKED}))
      << one->Err() << two->Err();
  MakeTenant("b", kTakeBytes);
  ASSERT_EQ(Gmb({"tenant", "set", "a", "--pause-grace", "1h"}).exit_code, 0);
  Touch("two-goes");
  ASSERT_TRUE(two->AwaitOut("put x 0\nwork x 0")) << two->Err();
  const auto owner =
      Start("owner", {.steps = {absl::StrCat("alloc y ", kTakeBytes)},
                      .run_options = {"--wait", "90s"},
                      .tenant = "b"});
  ASSERT_TRUE(component::Await([&] {
    return Gates().contains(v1::SessionInfo::GATE_PAUSING);
  })) << two->Err();
  Touch("one-goes");
  EXPECT_TRUE(one->AwaitOut(absl::StrCat("get x 0 ", 3 * kBytes)))
      << one->Err();
  for (const char* const file : {"one-ends", "two-ends"}) Touch(file);
  for (const auto& rank : {&one, &two})
    EXPECT_EQ((*rank)->AwaitExit(), 0) << (*rank)->Err();
  EXPECT_EQ(owner->AwaitExit(), 0) << owner->Err();
}

// By the communicator's id, without a word from anybody.
TEST_F(PreloadGroupTest, RanksOfOneCommunicatorAreAGroup) {
  const auto one = Rank("one", {});
  const auto two = Rank("two", {});
  for (const char* const file : {"one-done", "two-done"}) Touch(file);
  ASSERT_TRUE(
      AwaitGates({v1::SessionInfo::GATE_PARKED, v1::SessionInfo::GATE_PARKED}))
      << one->Err() << two->Err();
  const std::string sessions = Gmb({"--output", "json", "session", "list"}).out;
  const size_t name = sessions.find("\"nccl-");
  ASSERT_NE(name, std::string::npos) << sessions;
  EXPECT_NE(sessions.find(sessions.substr(name, 38), name + 1),
            std::string::npos)
      << sessions;
  for (const char* const file :
       {"one-goes", "two-goes", "one-ends", "two-ends"}) {
    Touch(file);
  }
  for (const auto& rank : {&one, &two})
    EXPECT_EQ((*rank)->AwaitExit(), 0) << (*rank)->Err();
}

}  // namespace
}  // namespace gmb::component
