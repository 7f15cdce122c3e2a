#include <algorithm>
#include <ostream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;

constexpr char kInvalidValue[] = "1";
constexpr char kInvalidContext[] = "201";
constexpr char kAtWork[] = "600";  // CUDA_ERROR_NOT_READY

// Pools of both GPUs. The program's device is 0, its stream 3 is of device 1.
class PreloadContextsTest : public PreloadTest {
 protected:
  void SetUp() override {
    StartGpuBroker({"cuda:0", "cuda:1"});
    MakeTenant("a", 0, 256 * kMiB);
  }

  static Words WithStreamOfOther(const Words& steps) {
    Words all = {"device 1", "add-stream", "pop"};
    all.insert(all.end(), steps.begin(), steps.end());
    return all;
  }
  // The lines that it printed for the steps.
  Words RunWithStreamOfOther(const Words& steps) const {
    Words lines = Run(
        {.steps = WithStreamOfOther(steps), .run_options = {"--wait", "0s"}});
    lines.erase(lines.begin(),
                lines.begin() + std::min<size_t>(lines.size(), 3));
    return lines;
  }
  static std::string Info(uint64_t free_bytes) {
    return absl::StrCat("info 0 ", free_bytes, " ", 256 * kMiB);
  }
};

TEST_F(PreloadContextsTest, AStreamsAllocationsAreOfItsDevice) {
  EXPECT_THAT(
      RunWithStreamOfOther({absl::StrCat("alloc-async x ", 100 * kMiB, " 3"),
                            "info", "device 1", "info",
                            absl::StrCat("alloc-async y ", 50 * kMiB, " 1"),
                            "info", "pop", "info"}),
      ElementsAre("alloc-async x 0", Info(256 * kMiB), "device 1 0",
                  Info(156 * kMiB), "alloc-async y 0", Info(156 * kMiB),
                  "pop  0", Info(206 * kMiB), "end"));
}

TEST_F(PreloadContextsTest, ItsFreesAreInItsOrderWhateverIsCurrent) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(
      RunWithStreamOfOther(
          {"alloc-async x " + bytes + " 3", "work x 3", "free-async x 3",
           "alloc-async y " + bytes + " 3", "same x y", "work y 3",
           "free-async y 3", "device 1", "add-stream",
           "alloc-async z " + bytes + " 4", "same y z", "synchronize 3",
           "alloc-async z " + bytes + " 4", "same y z"}),
      ElementsAre("alloc-async x 0", "work x 0", "free-async x 0",
                  "alloc-async y 0", "same 1", "work y 0", "free-async y 0",
                  "device 1 0", "add-stream  0", "alloc-async z 0", "same 0",
                  "synchronize 3 0", "alloc-async z 0", "same 1", "end"));
}

// A copy to the host, say, which a stream of any device may make.
TEST_F(PreloadContextsTest, WorkOfAnotherDevicesStreamIsWaitedForBeforeReuse) {
  EXPECT_THAT(
      RunWithStreamOfOther({absl::StrCat("alloc x ", 200 * kMiB), "device 1",
                            "work x 3", "free-async x 3", "pop", "stream 3",
                            absl::StrCat("alloc y ", 220 * kMiB), "stream 3"}),
      ElementsAre("alloc x 0", "device 1 0", "work x 0", "free-async x 0",
                  "pop  0", "stream 3 600", "alloc y 0", "stream 3 0", "end"));
}

TEST_F(PreloadContextsTest, TheDefaultStreamIsTheCurrentContexts) {
  const std::string bytes = absl::StrCat(4 * kMiB);
  EXPECT_THAT(
      RunWithStreamOfOther({"alloc-async x " + bytes + " default", "work x 1",
                            "free-async x default",
                            "alloc-async y " + bytes + " 2", "same x y",
                            "synchronize 1", "alloc-async z " + bytes + " 2",
                            "same x z", "pop", "free-async z default"}),
      ElementsAre("alloc-async x 0", "work x 0", "free-async x 0",
                  "alloc-async y 0", "same 0", "synchronize 1 0",
                  "alloc-async z 0", "same 1", "pop  0",
                  absl::StrCat("free-async z ", kInvalidContext), "end"));
}

TEST_F(PreloadContextsTest, AStreamNeedsNoCurrentContext) {
  EXPECT_THAT(
      RunWithStreamOfOther(
          {"pop", absl::StrCat("alloc-async x ", 200 * kMiB, " 1"),
           "free-async x 1", absl::StrCat("alloc-async y ", 220 * kMiB, " 1"),
           "alloc-async z 4096 default"}),
      ElementsAre("pop  0", "alloc-async x 0", "free-async x 0",
                  "alloc-async y 0",
                  absl::StrCat("alloc-async z ", kInvalidContext), "end"));
}

// In each way in which the context can end that memory was freed in, the memory
// goes back at once, and the program goes on.
struct End {
  std::string name;
  Words before;  // makes the stream 4, of the context that ends
  std::string step;
  Words after = {};  // makes a context current again
};

void PrintTo(const End& end, std::ostream* out) { *out << end.name; }

class PreloadContextEndTest : public PreloadContextsTest,
                              public ::testing::WithParamInterface<End> {};

TEST_P(PreloadContextEndTest, WhatWasFreedInItGoesBack) {
  Words steps = WithStreamOfOther(GetParam().before);
  Words later = {absl::StrCat("alloc x ", 4 * kMiB),
                 "work x 4",
                 "free-async x 4",
                 "alloc s 4096",
                 "free-async s 4",
                 GetParam().step};
  later.insert(later.end(), GetParam().after.begin(), GetParam().after.end());
  later.insert(later.end(),
               {"info", Await("look"), absl::StrCat("alloc y ", 4 * kMiB),
                "write y 4096", "free y", Await("end")});
  steps.insert(steps.end(), later.begin(), later.end());
  const auto program = Start("program", {.steps = steps});
  ASSERT_TRUE(program->AwaitOut("info 0")) << program->Out() << program->Err();
  // Without the small one's: a lease is kept for the next.
  ExpectLeases("a", {2 * kMiB});
  Touch("look");
  ASSERT_TRUE(program->AwaitOut("free y 0")) << program->Out();
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  for (const std::string& line :
       {std::string("free-async x 0"), std::string("free-async s 0"),
        GetParam().step + " 0"}) {
    EXPECT_THAT(program->Out(), ::testing::HasSubstr(line));
  }
}

std::vector<End> Ends() {
  return {
      {"green", {"new-green 0", "add-stream"}, "destroy-green "},
      // Of a GPU that nothing was leased from.
      {"released",
       {"device 1", "add-stream", "pop", "release-primary 1"},
       "release-primary 1"},
      {"reset", {"add-stream"}, "reset 0", {"device 0"}},
      {"destroyed", {"new-context 0", "add-stream"}, "destroy-context "},
      {"detached", {"new-context 0", "add-stream"}, "detach-context "},
  };
}

INSTANTIATE_TEST_SUITE_P(Ways, PreloadContextEndTest,
                         ::testing::ValuesIn(Ends()),
                         [](const auto& end) { return end.param.name; });

// The driver's own synchronise waits for the current context alone, which
// programs of several may have changed since.
TEST_F(PreloadContextsTest, AFreeWaitsForThePrimaryContextToo) {
  for (const std::string& other : Words{"new-context 0", "new-green 0"}) {
    EXPECT_THAT(
        Run({.steps = {absl::StrCat("alloc x ", 8 * kMiB), "work x 1",
                       "stream 1", other, "free x", "stream 1"}}),
        ElementsAre("alloc x 0", "work x 0", absl::StrCat("stream 1 ", kAtWork),
                    other + " 0", "free x 0", "stream 1 0", "end"));
  }
}

TEST_F(PreloadContextsTest, AFreeWaitsForTheContextThatItsMemoryIsOf) {
  EXPECT_THAT(
      Run({.steps = {"new-context 0", absl::StrCat("alloc x ", 8 * kMiB),
                     "add-stream", "work x 3", "device 0", "stream 3", "free x",
                     "stream 3"}}),
      ElementsAre("new-context 0 0", "alloc x 0", "add-stream  0", "work x 0",
                  "device 0 0", absl::StrCat("stream 3 ", kAtWork), "free x 0",
                  "stream 3 0", "end"));
}

// Its kernels cannot reach the memory, which the driver does not wait for either:
// gpu_frees shows that.
TEST_F(PreloadContextsTest, AFreeDoesNotWaitForAnotherContext) {
  const std::string alloc = absl::StrCat("alloc x ", 8 * kMiB);
  const std::string at_work = absl::StrCat("stream 3 ", kAtWork);
  EXPECT_THAT(
      Run({.steps = {alloc, "new-context 0", "add-stream",
                     absl::StrCat("alloc y ", 8 * kMiB), "work y 3", "free x",
                     "stream 3", "device 0", alloc, "free x", "stream 3"}}),
      ElementsAre("alloc x 0", "new-context 0 0", "add-stream  0", "alloc y 0",
                  "work y 0", "free x 0", at_work, "device 0 0", "alloc x 0",
                  "free x 0", at_work, "end"));
}

// Nothing is left that may use what was of it.
TEST_F(PreloadContextsTest, TheEndOfAContextDoesNotWaitForAnother) {
  const std::string bytes = absl::StrCat(8 * kMiB);
  const Words of_another = {"new-context 0",    "add-stream",
                            "alloc y " + bytes, "work y 3",
                            "new-context 0",    "add-stream"};
  const auto ends_at_once = [&](const Words& frees) {
    Words steps = of_another;
    steps.insert(steps.end(), frees.begin(), frees.end());
    steps.insert(steps.end(), {"destroy-context ", "stream 3", "info"});
    Words lines = Run({.steps = steps});
    lines.erase(lines.begin(), lines.end() - std::min<size_t>(lines.size(), 4));
    EXPECT_THAT(lines, ElementsAre("destroy-context  0",
                                   absl::StrCat("stream 3 ", kAtWork),
                                   Info(248 * kMiB), "end"));
  };
  ends_at_once({"alloc x " + bytes, "begin-capture 4", "free x"});
  ends_at_once({"alloc-async x " + bytes + " 4", "free-async x 4"});
}

// It is of no context: kernels of each may use it.
TEST_F(PreloadContextsTest, AFreeOfAPoolsMemoryWaitsForAllContexts) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc-async x ", 8 * kMiB, " 1"),
                     "new-context 0", "add-stream", "work x 3", "device 0",
                     "stream 3", "free x", "stream 3"}}),
      ElementsAre("alloc-async x 0", "new-context 0 0", "add-stream  0",
                  "work x 0", "device 0 0", absl::StrCat("stream 3 ", kAtWork),
                  "free x 0", "stream 3 0", "end"));
}

// A detach ends a context only where none is left that has attached it.
TEST_F(PreloadContextsTest, AFreeWaitsForAContextThatIsStillAttached) {
  const std::string alloc = absl::StrCat("alloc x ", 8 * kMiB);
  EXPECT_THAT(Run({.steps = {"new-context 0", alloc, "add-stream",
                             "attach-context", "detach-context", "work x 3",
                             "device 0", "stream 3", "free x", "stream 3",
                             "pop", "detach-context", alloc, "free x"}}),
              ElementsAre("new-context 0 0", "alloc x 0", "add-stream  0",
                          "attach-context  0", "detach-context  0", "work x 0",
                          "device 0 0", absl::StrCat("stream 3 ", kAtWork),
                          "free x 0", "stream 3 0", "pop  0",
                          "detach-context  0", "alloc x 0", "free x 0", "end"));
}

// Nothing of a context runs any more once it is lost.
TEST_F(PreloadContextsTest, AFreeDoesNotMindAnotherContextsFault) {
  const std::string alloc = absl::StrCat("alloc x ", 200 * kMiB);
  const std::string again = absl::StrCat("alloc y ", 220 * kMiB);
  EXPECT_THAT(Run({.steps = {"new-context 0", alloc, "fault-here 700",
                             "device 0", "free x", again},
                   .run_options = {"--wait", "0s"}}),
              ElementsAre("new-context 0 0", "alloc x 0", "fault-here 700",
                          "device 0 0", "free x 0", "alloc y 0", "end"));
  EXPECT_THAT(Run({.steps = {alloc, "new-context 0", "device 0",
                             "fault-here 700", "pop", "free x"}}),
              ElementsAre("alloc x 0", "new-context 0 0", "device 0 0",
                          "fault-here 700", "pop  0", "free x 0", "end"));
}

// It may still be at work.
TEST_F(PreloadContextsTest, AFreeFailsWhereItsContextRefusesToBeWaitedFor) {
  constexpr char kCaptures[] = "900";
  EXPECT_THAT(
      Run({.steps = {"new-context 0", absl::StrCat("alloc x ", 8 * kMiB),
                     absl::StrCat("fault-here ", kCaptures), "device 0",
                     "free x", "pop", "fault-here 0", "free x"}}),
      ElementsAre("new-context 0 0", "alloc x 0",
                  absl::StrCat("fault-here ", kCaptures), "device 0 0",
                  absl::StrCat("free x ", kCaptures), "pop  0", "fault-here 0",
                  "free x 0", "end"));
}

// The driver does not name a primary context any more that is at fault.
TEST_F(PreloadContextsTest, AResetOfOneAtFaultLeavesAnotherDevicesCapture) {
  EXPECT_THAT(
      RunWithStreamOfOther({absl::StrCat("alloc x ", 8 * kMiB),
                            "fault-here 700", "device 1", "begin-capture 3",
                            "reset 0", "free x", "end-capture 3"}),
      ElementsAre("alloc x 0", "fault-here 700", "device 1 0",
                  "begin-capture 3 0", "reset 0 0",
                  absl::StrCat("free x ", kInvalidValue), "end-capture 3 0",
                  "end"));
}

TEST_F(PreloadContextsTest, AResetOfOneAtFaultEndsItsOwnCapture) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 200 * kMiB), "begin-capture 1",
                     "fault-here 700", "device 1", "reset 0", "device 0",
                     "free x", absl::StrCat("alloc y ", 220 * kMiB)},
           .run_options = {"--wait", "0s"}}),
      ElementsAre("alloc x 0", "begin-capture 1 0", "fault-here 700",
                  "device 1 0", "reset 0 0", "device 0 0",
                  absl::StrCat("free x ", kInvalidValue), "alloc y 0", "end"));
}

TEST_F(PreloadContextsTest, AResetOfOneAtFaultLeavesTheContextsThatWereMade) {
  EXPECT_THAT(
      Run({.steps = {"new-context 0", absl::StrCat("alloc x ", 8 * kMiB),
                     "add-stream", "work x 3", "device 0", "fault-here 700",
                     "device 1", "reset 0", "stream 3", "free x", "stream 3"}}),
      ElementsAre("new-context 0 0", "alloc x 0", "add-stream  0", "work x 0",
                  "device 0 0", "fault-here 700", "device 1 0", "reset 0 0",
                  absl::StrCat("stream 3 ", kAtWork), "free x 0", "stream 3 0",
                  "end"));
}

// As the driver frees it: gpu_context_ends shows what ends with which context.
TEST_F(PreloadContextsTest, MemoryEndsWithItsContext) {
  const std::string alloc = absl::StrCat("alloc x ", 200 * kMiB);
  const std::string small = "alloc s 4096";
  const std::string again = absl::StrCat("alloc y ", 220 * kMiB);
  for (const Words& ways : std::vector<Words>{
           {"destroy-context"},
           {"detach-context"},
           {"attach-context", "detach-context", "detach-context"}}) {
    Words steps = {"new-context 0", alloc, small};
    steps.insert(steps.end(), ways.begin(), ways.end());
    steps.insert(steps.end(), {"free x", "free s", again, "write y 4096"});
    const Words lines = Run({.steps = steps, .run_options = {"--wait", "0s"}});
    for (const std::string& line :
         {absl::StrCat("free x ", kInvalidValue),
          absl::StrCat("free s ", kInvalidValue), std::string("alloc y 0"),
          std::string("write y 0"), std::string("end")}) {
      EXPECT_THAT(lines, ::testing::Contains(line)) << ways.front();
    }
  }
  EXPECT_THAT(Run({.steps = {alloc, small, "reset 0", "device 0", "free x",
                             "free s", again, "write y 4096"},
                   .run_options = {"--wait", "0s"}}),
              ElementsAre("alloc x 0", "alloc s 0", "reset 0 0", "device 0 0",
                          absl::StrCat("free x ", kInvalidValue),
                          absl::StrCat("free s ", kInvalidValue), "alloc y 0",
                          "write y 0", "end"));
}

TEST_F(PreloadContextsTest, OtherMemoryDoesNotEndWithAContext) {
  const Words used = {"write p 4096", "write m 4096", "free p", "free m"};
  const Words answers = {"write p 0", "write m 0", "free p 0", "free m 0",
                         "end"};
  Words steps = {
      "new-context 0", absl::StrCat("alloc m ", 8 * kMiB),
      "device 0",      absl::StrCat("alloc-async p ", 8 * kMiB, " 1"),
      "reset 0",       "device 0"};
  steps.insert(steps.end(), used.begin(), used.end());
  Words lines = {"new-context 0 0", "alloc m 0", "device 0 0",
                 "alloc-async p 0", "reset 0 0", "device 0 0"};
  lines.insert(lines.end(), answers.begin(), answers.end());
  EXPECT_EQ(Run({.steps = steps}), lines);

  steps = {absl::StrCat("alloc m ", 8 * kMiB), "new-context 0", "add-stream",
           absl::StrCat("alloc-async p ", 8 * kMiB, " 3"), "destroy-context"};
  steps.insert(steps.end(), used.begin(), used.end());
  lines = {"alloc m 0", "new-context 0 0", "add-stream  0", "alloc-async p 0",
           "destroy-context  0"};
  lines.insert(lines.end(), answers.begin(), answers.end());
  EXPECT_EQ(Run({.steps = steps}), lines);
}

// It goes back as soon as nothing is captured any more, and waits for nobody.
TEST_F(PreloadContextsTest, MemoryThatEndedDuringACaptureGoesBackAfterIt) {
  EXPECT_THAT(
      Run({.steps = {"new-context 0", absl::StrCat("alloc x ", 200 * kMiB),
                     "device 0", "begin-capture 1", "destroy-context",
                     absl::StrCat("alloc y ", 220 * kMiB), "end-capture 1",
                     absl::StrCat("alloc y ", 220 * kMiB)},
           .run_options = {"--wait", "0s"}}),
      ElementsAre("new-context 0 0", "alloc x 0", "device 0 0",
                  "begin-capture 1 0", "destroy-context  0", "alloc y 2",
                  "end-capture 1 0", "alloc y 0", "end"));
}

TEST_F(PreloadContextsTest, WhatACaptureHeldUpWaitsForAllContextsToo) {
  EXPECT_THAT(
      Run({.steps = {absl::StrCat("alloc x ", 8 * kMiB), "work x 1",
                     "begin-capture 2", "free x", "new-context 0", "stream 1",
                     "end-capture 2", "stream 1"}}),
      ElementsAre("alloc x 0", "work x 0", "begin-capture 2 0", "free x 0",
                  "new-context 0 0", absl::StrCat("stream 1 ", kAtWork),
                  "end-capture 2 0", "stream 1 0", "end"));
}

// The driver ends a context with a capture open, and the capture with it.
TEST_P(PreloadContextEndTest, ACaptureThatWasOpenInItIsOver) {
  Words steps = WithStreamOfOther(GetParam().before);
  Words later = {"begin-capture 4", GetParam().step};
  later.insert(later.end(), GetParam().after.begin(), GetParam().after.end());
  later.insert(later.end(), {absl::StrCat("alloc x ", 200 * kMiB), "free x",
                             absl::StrCat("alloc y ", 220 * kMiB)});
  steps.insert(steps.end(), later.begin(), later.end());
  const Words lines = Run({.steps = steps, .run_options = {"--wait", "0s"}});
  for (const std::string& line :
       {std::string("begin-capture 4 0"), GetParam().step + " 0",
        std::string("free x 0"), std::string("alloc y 0")}) {
    EXPECT_THAT(lines, ::testing::Contains(line));
  }
}

// A launcher asks about each argument. Whether kernels can use it depends on the
// current context, whatever another one was told before.
TEST_F(PreloadContextsTest, AnArgumentsAddressIsOfTheCurrentContext) {
  const std::string alloc = absl::StrCat("alloc x ", 4 * kMiB);
  const std::string here = "argument x 0 1";
  const std::string elsewhere = "argument x 1 0";  // CUDA_ERROR_INVALID_VALUE
  EXPECT_THAT(Run({.steps = {alloc, "argument x", "argument x", "device 1",
                             "argument x", "pop", "argument x"}}),
              ElementsAre("alloc x 0", here, here, "device 1 0", elsewhere,
                          "pop  0", here, "end"));
  EXPECT_THAT(Run({.steps = {alloc, "device 1", "argument x", "argument x",
                             "pop", "argument x", "argument x"}}),
              ElementsAre("alloc x 0", "device 1 0", elsewhere, elsewhere,
                          "pop  0", here, here, "end"));
}

}  // namespace
}  // namespace gmb::component
