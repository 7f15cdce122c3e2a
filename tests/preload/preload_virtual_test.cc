// Memory that programs make and map themselves, in the ways of those that do.
#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PreloadVirtualTest : public PreloadTest {
 protected:
  static constexpr int kInvalid = 1;
  static constexpr int kOutOfMemory = 2;
  static constexpr int kNotSupported = 801;

  static std::string Sized(const char* step, uint64_t mib,
                           const char* more = "") {
    return absl::StrCat(step, " ", mib * kMiB, more);
  }
};

// vLLM's sleep: one handle a segment, which goes, and comes back to its
// addresses.
TEST_F(PreloadVirtualTest, ASleeperGivesItsMemoryBackAndKeepsItsAddresses) {
  const Words wake = {Sized("create h", 64), Sized("map h v", 64),
                      Sized("access v", 64), Sized("put v", 64, " 3"),
                      Sized("get v", 64)};
  Words steps = {Sized("reserve v", 64)};
  steps.insert(steps.end(), wake.begin(), wake.end());
  steps.insert(steps.end(), {Await("sleep"), Sized("unmap v", 64), "release h",
                             Await("wake")});
  steps.insert(steps.end(), wake.begin(), wake.end());
  steps.push_back(Await("end"));
  const auto program = Start("program", {.steps = steps});
  const std::string right = absl::StrCat("get v 0 ", 3 * 64 * kMiB);
  ASSERT_TRUE(program->AwaitOut(right)) << program->Err();
  ExpectLeases("a", {64 * kMiB});
  Touch("sleep");
  ASSERT_TRUE(program->AwaitOut("unmap v 0\nrelease h 0")) << program->Err();
  ExpectLeases("a", {});
  Touch("wake");
  ASSERT_TRUE(program->AwaitOut(absl::StrCat(
      "release h 0\ncreate h 0\nmap h 0\naccess v 0\nput v 0\n", right)))
      << program->Out();
  ExpectLeases("a", {64 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0);  // it ends while all is mapped
  ExpectLeases("a", {});
}

// PyTorch's expandable segments: neighbours in one large space, access over all
// of them at once; and llama.cpp's pool, which releases what it has mapped.
TEST_F(PreloadVirtualTest, NeighboursAreUsedAndGivenBackAsOne) {
  const auto program = Start("program", {.steps = {Sized("reserve v", 1024),
                                                   Sized("create a", 20, " 1"),
                                                   Sized("create b", 2, " 1"),
                                                   Sized("create c", 20, " 1"),
                                                   Sized("at vb v", 20),
                                                   Sized("at vc v", 24),
                                                   Sized("map a v", 20),
                                                   Sized("map b vb", 2),
                                                   Sized("access v", 22),
                                                   Sized("map c vc", 20),
                                                   Sized("access vc", 20),
                                                   Sized("put v", 22, " 7"),
                                                   "release b",
                                                   "release c",
                                                   "release a",
                                                   Sized("get v", 22),
                                                   "range vb 5",
                                                   Await("unmap"),
                                                   Sized("unmap v", 44),
                                                   "range vb 5",
                                                   Sized("unreserve v", 1024),
                                                   Await("end")}});
  ASSERT_TRUE(program->AwaitOut("range vb")) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat(
                  "put v 0\nrelease b 0\nrelease c 0\nrelease a 0\nget v 0 ",
                  7 * 22 * kMiB, "\nrange vb 0 0 ", 2 * kMiB)));
  ExpectLeases("a", {2 * kMiB, 20 * kMiB, 20 * kMiB});
  Touch("unmap");
  ASSERT_TRUE(program->AwaitOut("unreserve v 0")) << program->Out();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("unmap v 0\nrange vb ", kInvalid, " ")));
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

// Its user is told, once, by which switch it goes without.
TEST_F(PreloadVirtualTest, WhatIsNotPossibleNamesTheProgramsOwnSwitch) {
  const auto program = Start(
      "program", {.steps = {Sized("create f", 4, " 8"),
                            Sized("create h", 4, " 1"), Sized("multicast h", 4),
                            Sized("multicast h", 4), "release h"}});
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(
      program->Out(),
      HasSubstr(absl::StrCat(
          "create f ", kNotSupported, "\ncreate h 0\nmulticast h ",
          kNotSupported, "\nmulticast h ", kNotSupported, "\nrelease h 0\n")));
  const std::string said = program->Err();
  const std::string vllm = "VLLM_ALLREDUCE_USE_SYMM_MEM=0 (vLLM)";
  EXPECT_THAT(said, HasSubstr(vllm));
  EXPECT_EQ(said.find(vllm), said.rfind(vllm)) << said;
}

// The driver crashes on a name of ours: it takes handles for addresses. Those of
// its own it gets.
TEST_F(PreloadVirtualTest, AFunctionThatIsNotKnownGetsNoHandleOfOurs) {
  const auto program =
      Start("program",
            {.steps = {Sized("create h", 4, " 1"), "future-multicast h",
                       Sized("nccl-create n", 4, " 1"), "future-multicast n",
                       "future-multicast h", "future-release h",
                       "future-release n", "release h"}});
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  const std::string multicast =
      absl::StrCat("future-multicast h ", kNotSupported, "\n");
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat(
                  "create h 0\n", multicast, "nccl-create n 0\n",
                  "future-multicast n 0\n", multicast, "future-release h ",
                  kNotSupported, "\nfuture-release n 0\nrelease h 0\n")));
  EXPECT_THAT(program->Err(),
              HasSubstr("VLLM_ALLREDUCE_USE_SYMM_MEM=0 (vLLM)"));
  EXPECT_THAT(program->Err(),
              HasSubstr("a handle of leased memory went to a newer form of "
                        "cuMemRelease than gmb knows"));
}

// XLA asks for the most that a handle can do, and for less when it is refused;
// NCCL frees by the address alone.
TEST_F(PreloadVirtualTest, HandlesAreWhatWasAskedForAndFoundByTheirAddress) {
  EXPECT_THAT(
      Run({.steps = {"fabric",
                     Sized("create h", 4, " 9 rdma"),
                     Sized("create h", 4, " 1 rdma"),
                     "properties h",
                     Sized("reserve v", 8),
                     Sized("at w v", 4),
                     Sized("map h v", 4),
                     Sized("map h w", 4),
                     Sized("access v", 8),
                     Sized("put v", 4, " 2"),
                     Sized("get w", 4),
                     "export h",
                     "retain again w",
                     "same-handle again h",
                     "release again",
                     "release again",
                     "release h",
                     "range w 77",
                     Sized("unmap v", 8),
                     "range w 77"}}),
      ElementsAre(
          "fabric 0", absl::StrCat("create h ", kNotSupported), "create h 0",
          "properties h 0 1 1", "reserve v 0", "map h 0", "map h 0",
          "access v 0", "put v 0", absl::StrCat("get w 0 ", 2 * 4 * kMiB),
          "export h 0", "retain again 0", "same-handle 1", "release again 0",
          "release again 0", absl::StrCat("release h ", kInvalid),
          absl::StrCat("range w 0 0 ", 4 * kMiB), "unmap v 0",
          ::testing::StartsWith(absl::StrCat("range w ", kInvalid)), "end"));
}

TEST_F(PreloadVirtualTest, MistakesAreInvalidAndHarmNothing) {
  const auto program =
      Start("program", {.steps = {Sized("reserve v", 16),
                                  Sized("create h", 4),
                                  Sized("create k", 4),
                                  Sized("at mid v", 2),
                                  Sized("at w v", 8),
                                  Sized("map h v", 2),
                                  Sized("map h v", 6),
                                  Sized("map h v", 4, " 2097152"),
                                  Sized("map h v", 4),
                                  Sized("map h v", 4),
                                  Sized("map k mid", 4),
                                  Sized("unmap v", 2),
                                  Sized("unmap mid", 4),
                                  Sized("access mid", 2),
                                  Sized("access v", 4),
                                  "release h",
                                  "release h",
                                  "properties h",
                                  Sized("map h w", 4),
                                  "release nobody",
                                  Sized("put v", 4, " 7"),
                                  Sized("get v", 4),
                                  Sized("unmap v", 4),
                                  Sized("unmap v", 4),
                                  Sized("access v", 4),
                                  "release k",
                                  Sized("create none", 3),
                                  Await("end")}});
  ASSERT_TRUE(program->AwaitOut("create none")) << program->Err();
  EXPECT_THAT(
      program->Out(),
      HasSubstr(absl::StrCat(
          "map h ", kNotSupported, "\nmap h 1\nmap h ", kNotSupported,
          "\nmap h 0\nmap h 1\nmap k 1\nunmap v 1\nunmap mid 1\n"
          "access mid 1\naccess v 0\nrelease h 0\nrelease h 1\n"
          "properties h 1 0 0\nmap h 1\nrelease nobody 1\nput v 0\nget v 0 ",
          7 * 4 * kMiB,
          "\nunmap v 0\nunmap v 1\naccess v 1\nrelease k 0\n"
          "create none 1\n")));
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

TEST_F(PreloadVirtualTest, AboveTheLimitIsOutOfMemory) {
  EXPECT_THAT(Run({.steps = {Sized("create a", 200), Sized("create b", 100),
                             "create c 1152921504606846976",
                             "create c 9223372036854775808", "release a",
                             Sized("create b", 100)},
                   .run_options = {"--wait", "0s"}}),
              ElementsAre("create a 0", absl::StrCat("create b ", kOutOfMemory),
                          absl::StrCat("create c ", kOutOfMemory),
                          absl::StrCat("create c ", kOutOfMemory),
                          "release a 0", "create b 0", "end"));
}

// Made by NCCL, or where the program is told so.
TEST_F(PreloadVirtualTest, WhatIsNotLeasedIsTheDrivers) {
  const auto using_it = [](const std::string& create, const std::string& end) {
    return Words{create,
                 Sized("reserve v", 4),
                 Sized("map h v", 4),
                 Sized("access v", 4),
                 Sized("put v", 4, " 2"),
                 Sized("get v", 4),
                 "export h",
                 end};
  };
  const auto nccl =
      Start("nccl",
            {.steps = using_it(Sized("nccl-create h", 4, " 1"), Await("end"))});
  const auto plain = Start(
      "plain", {.steps = using_it(Sized("create h", 4, " 1"), Await("end")),
                .run_options = {"--vmm", "native"}});
  for (Program* const program : {nccl.get(), plain.get()}) {
    ASSERT_TRUE(program->AwaitOut("export h")) << program->Err();
    EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("get v 0 ", 2 * 4 * kMiB,
                                                       "\nexport h 0")));
  }
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(nccl->AwaitExit(), 0);
  EXPECT_EQ(plain->AwaitExit(), 0);
}

// The driver does not say which device is meant before it is initialised, and
// then it does.
TEST_F(PreloadVirtualTest, AHandleThatIsAskedForTooEarlySpoilsNothing) {
  const auto program =
      Start("program", {.steps = {Sized("alloc x", 8), Await("end")},
                        .environment = {"PROGRAM_CREATES_FIRST=1"}});
  ASSERT_TRUE(program->AwaitOut("alloc x 0")) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr("create early 3\n"));
  ExpectLeases("a", {8 * kMiB});
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
}

}  // namespace
}  // namespace gmb::component
