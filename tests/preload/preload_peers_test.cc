// GPUs of one process use each other's memory, where the driver says that they
// can.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kInvalidValue[] = "1";
constexpr char kIllegalAddress[] = "700";

// Pools of both GPUs. The program's device is 0, its stream 3 is of device 1.
class PreloadPeersTest : public PreloadGateTest {
 protected:
  static constexpr uint64_t kAll = kBytes;

  void SetUp() override {
    StartGpuBroker({"cuda:0", "cuda:1"}, {"--host-pool=256MiB"});
    MakeTenant("a");
    MakeTenant("b");
    ASSERT_TRUE(component::Await([&] { return Status().host_pool().done(); }));
  }

  static Words WithStreamOfOther(const Words& steps) {
    Words all = {"device 1", "add-stream", "pop"};
    all.insert(all.end(), steps.begin(), steps.end());
    return all;
  }
  // The lines that it printed for the steps.
  [[nodiscard]] Words RunWith(const std::string& peers,
                              const Words& steps) const {
    Words lines =
        Run({.steps = WithStreamOfOther(steps), .environment = {peers}});
    lines.erase(lines.begin(),
                lines.begin() + std::min<size_t>(lines.size(), 3));
    return lines;
  }
};

constexpr char kPeers[] = "FAKE_CUDA_PEERS=1";
constexpr char kNoPeers[] = "NO_PEERS=1";
constexpr char kRefused[] = "FAKE_CUDA_PEERS=refused";

TEST_F(PreloadPeersTest, AKernelOfAnotherGpuStoresIntoEachKindOfAllocation) {
  for (const std::string& alloc :
       {absl::StrCat("alloc x ", 4 * kMiB), std::string("alloc x 4096"),
        absl::StrCat("alloc-async x ", 4 * kMiB, " 1")}) {
    EXPECT_THAT(
        RunWith(kPeers, {alloc, "put x 4096 3", "device 1", "store x 1024 5",
                         "pop", "get x 4096"}),
        ElementsAre(alloc.substr(0, alloc.find('x')) + "x 0", "put x 0",
                    "device 1 0", "store x 0", "pop  0",
                    absl::StrCat("get x 0 ", 1024 * 5 + 3072 * 3), "end"));
  }
}

TEST_F(PreloadPeersTest, AStreamOfEitherGpuCopiesBetweenThem) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(
      RunWith(kPeers,
              {"alloc x " + bytes, "put x 4096 3", "device 1",
               "alloc y " + bytes, "copy y x 4096 3", "synchronize 3",
               "get y 4096", "pop", "copy x y 4096 1", "synchronize 1"}),
      ElementsAre("alloc x 0", "put x 0", "device 1 0", "alloc y 0", "copy y 0",
                  "synchronize 3 0", absl::StrCat("get y 0 ", 4096 * 3),
                  "pop  0", "copy x 0", "synchronize 1 0", "end"));
}

// That it is kept for the next does not make it another's.
TEST_F(PreloadPeersTest, SoDoesMemoryThatWasFreedAndIsTakenAgain) {
  const std::string alloc = absl::StrCat("alloc x ", 4 * kMiB);
  EXPECT_THAT(
      RunWith(kPeers, {alloc, "free x", alloc, "device 1", "store x 4096 5"}),
      ElementsAre("alloc x 0", "free x 0", "alloc x 0", "device 1 0",
                  "store x 0", "end"));
}

TEST_F(PreloadPeersTest, WhereTheDriverSaysNoTheyDoNot) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(RunWith(kNoPeers,
                      {"alloc x " + bytes, "device 1", "alloc y " + bytes,
                       "copy y x 4096 3", "store x 4096 5", "store y 4096 5"}),
              ElementsAre("alloc x 0", "device 1 0", "alloc y 0",
                          absl::StrCat("copy y ", kInvalidValue),
                          absl::StrCat("store x ", kIllegalAddress),
                          "store y 0", "end"));
}

// It would take some hundred MiB of that GPU, from outside the pool.
TEST_F(PreloadPeersTest, AGpuThatTheProgramDoesNotUseGetsNoContext) {
  EXPECT_THAT(Run({.steps = {absl::StrCat("alloc x ", 4 * kMiB),
                             "store x 4096 5", "active 1", "free x",
                             absl::StrCat("alloc y ", 6 * kMiB), "active 1"},
                   .environment = {kPeers}}),
              ElementsAre("alloc x 0", "store x 0", "active 1 0", "free x 0",
                          "alloc y 0", "active 1 0", "end"));
}

TEST_F(PreloadPeersTest, ADriverThatDoesNotLetThemCostsNoAllocation) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", 4 * kMiB),
                                  absl::StrCat("alloc y ", 6 * kMiB),
                                  "store x 4096 5", "store y 4096 5"},
                        .environment = {kRefused}});
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr("alloc x 0\nalloc y 0\nstore x 0\nstore y 0\n"));
  const std::string said = program->Err();
  const std::string line = "does not map leased memory for other GPUs";
  EXPECT_THAT(said, HasSubstr(line));
  EXPECT_EQ(said.find(line), said.rfind(line)) << said;
}

TEST_F(PreloadPeersTest, MemoryThatWasAwayIsTheirsAgain) {
  const auto program =
      Start("program", {.steps = WithStreamOfOther(
                            {absl::StrCat("alloc x ", kBytes),
                             absl::StrCat("put x ", kAll, " 3"), "device 1",
                             PreloadTest::Await("call"), "store x 4096 5",
                             "pop", absl::StrCat("get x ", kAll)}),
                        .run_options = Soon(),
                        .environment = {kPeers}});
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other = TakeTheDevice("other-ends");
  Touch("call");
  EXPECT_TRUE(component::Await([&] { return Waiting() >= 1; }));
  Touch("other-ends");
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("store x 0\npop  0\nget x 0 ",
                                     3 * kAll + 4096 * 2, "\n")));
}

}  // namespace
}  // namespace gmb::component
