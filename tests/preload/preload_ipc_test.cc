// Memory that processes of one tenant share: by handles of legacy CUDA IPC, as
// torch.multiprocessing does, and by the file descriptor of a handle.
#include <algorithm>
#include <csignal>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class PreloadIpcTest : public PreloadGateTest {
 protected:
  static constexpr int kInvalid = 1;
  static constexpr int kOutOfMemory = 2;
  static constexpr int kInvalidContext = 201;
  static constexpr int kInvalidHandle = 400;
  static constexpr uint64_t kSmallBytes = 1000;

  [[nodiscard]] std::string File(const std::string& name) const {
    return absl::StrCat(Directory(), "/", name);
  }
  [[nodiscard]] std::string HandleOf(const std::string& name) const {
    return absl::StrCat("ipc-handle ", name, " ", File(name));
  }
  // Opens what stands in the file as `name`.
  [[nodiscard]] std::string Open(const std::string& name,
                                 const std::string& file) const {
    return absl::StrCat("ipc-open ", name, " ", File(file));
  }
  // Of one of a's leases.
  [[nodiscard]] uint32_t MostSlabs() const {
    v1::ListLeasesRequest request;
    request.set_tenant("a");
    const auto leases = admin().ListLeases(request);
    uint32_t most = 0;
    if (leases.ok()) {
      for (const auto& lease : leases->leases())
        most = std::max(most, lease.slabs());
    }
    return most;
  }
  // It has `x`, with threes in it, and `s`, a small one with fours beside another,
  // and handles of both in files of their names. Then it goes on with `more`.
  [[nodiscard]] std::unique_ptr<Program> Exporter(const Words& more) const {
    Words steps = {absl::StrCat("alloc x ", kBytes),
                   absl::StrCat("put x ", kBytes, " 3"),
                   absl::StrCat("alloc before ", kSmallBytes),
                   absl::StrCat("alloc s ", kSmallBytes),
                   absl::StrCat("put s ", kSmallBytes, " 4"),
                   HandleOf("x"),
                   HandleOf("s")};
    steps.insert(steps.end(), more.begin(), more.end());
    auto program = Start("exporter", {.steps = steps, .run_options = Soon()});
    EXPECT_TRUE(program->AwaitOut("ipc-handle x 0\nipc-handle s 0\n"))
        << program->Err() << program->Out();
    return program;
  }
};

// An allocation of several slabs, and a small one.
TEST_F(PreloadIpcTest, AnotherProcessReadsAndWritesIt) {
  const auto exporter = Exporter(
      {"extent x 5", "extent s 5", Await("written"),
       absl::StrCat("get x ", kBytes), absl::StrCat("get s ", kSmallBytes),
       HandleOf("x"), "free x", "free s", Await("end")});
  ASSERT_TRUE(exporter->AwaitOut("extent s")) << exporter->Err();
  ASSERT_GT(MostSlabs(), 1u);
  EXPECT_THAT(exporter->Out(),
              HasSubstr(absl::StrCat("extent x 0 0 0 ", kBytes, " 1\n",
                                     "extent s 0 0 0 ", kSmallBytes, " 1\n")));
  const auto importer =
      Start("importer", {.steps = {Open("y", "x"),
                                   Open("again", "x"),
                                   "same y again",
                                   Open("t", "s"),
                                   absl::StrCat("get y ", kBytes),
                                   absl::StrCat("get t ", kSmallBytes),
                                   "range y 7",
                                   "range t 7",
                                   "extent y 7",
                                   "retain h y",
                                   "free y",
                                   absl::StrCat("put y ", kBytes, " 5"),
                                   absl::StrCat("put t ", kSmallBytes, " 6"),
                                   Await("freed"),
                                   absl::StrCat("get y ", kBytes),
                                   "ipc-close again",
                                   absl::StrCat("get y ", kBytes),
                                   "ipc-close y",
                                   "ipc-close t",
                                   "ipc-close y",
                                   Await("end")}});
  ASSERT_TRUE(importer->AwaitOut("put t 0\n")) << importer->Err();
  EXPECT_THAT(
      importer->Out(),
      HasSubstr(absl::StrCat(
          "ipc-open y 0\nipc-open again 0\nsame 1\nipc-open t 0\nget y 0 ",
          3 * kBytes, "\nget t 0 ", 4 * kSmallBytes, "\nrange y 0 0 ", kBytes,
          "\nrange t 0 0 ", kSmallBytes, "\nextent y 0 0 0 ", kBytes,
          " 0\nretain h ", kInvalid, "\nfree y ", kInvalid, "\nput y 0\n")));
  ExpectLeases("a", {kBytes, 2 * kMiB});  // charged once
  Touch("written");
  ASSERT_TRUE(exporter->AwaitOut("free s 0\n")) << exporter->Err();
  EXPECT_THAT(exporter->Out(),
              HasSubstr(absl::StrCat("get x 0 ", 5 * kBytes, "\nget s 0 ",
                                     6 * kSmallBytes)));
  ExpectLeases("a", {kBytes, 2 * kMiB});  // the importer has it still
  Touch("freed");
  ASSERT_TRUE(importer->AwaitOut("ipc-close t 0\n")) << importer->Err();
  const std::string right = absl::StrCat("get y 0 ", 5 * kBytes, "\n");
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat(right, "ipc-close again 0\n", right,
                                     "ipc-close y 0\nipc-close t 0\n")));
  ExpectLeases("a", {2 * kMiB});  // where more small ones may come
  Touch("end");
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
  ExpectLeases("a", {});
}

TEST_F(PreloadIpcTest, HandlesThatAreNobodysAreErrors) {
  const auto exporter = Exporter({Open("own", "x"), "alloc-async p 2097152 0",
                                  absl::StrCat("ipc-handle p ", File("p")),
                                  "extent p 0", "free x", Await("end")});
  ASSERT_TRUE(exporter->AwaitOut("free x 0\n")) << exporter->Err();
  EXPECT_THAT(exporter->Out(), HasSubstr(absl::StrCat(
                                   "ipc-open own ", kInvalidContext,
                                   "\nalloc-async p 0\nipc-handle p ", kInvalid,
                                   "\nextent p 0 0 0 2097152 0\n")));
  const auto stranger =
      Start("stranger", {.steps = {Open("t", "s")}, .tenant = "b"});
  EXPECT_EQ(stranger->AwaitExit(), 0) << stranger->Err();
  EXPECT_THAT(stranger->Out(),
              HasSubstr(absl::StrCat("ipc-open t ", kInvalidHandle, "\n")));
  EXPECT_THAT(
      Run({.steps = {Open("stale", "x"), Open("t", "s"),
                     absl::StrCat("get t ", kSmallBytes),
                     absl::StrCat("ipc-spoil ", File("s")), Open("forged", "s"),
                     absl::StrCat("get t ", kSmallBytes), "ipc-close t",
                     Open("forged", "s")}}),
      ElementsAre(absl::StrCat("ipc-open stale ", kInvalidHandle),
                  "ipc-open t 0", absl::StrCat("get t 0 ", 4 * kSmallBytes),
                  absl::StrCat("ipc-spoil ", File("s"), " 0"),
                  absl::StrCat("ipc-open forged ", kInvalidHandle),
                  absl::StrCat("get t 0 ", 4 * kSmallBytes), "ipc-close t 0",
                  absl::StrCat("ipc-open forged ", kInvalidHandle), "end"));
  ExpectLeases("b", {});
  Touch("end");
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
  ExpectLeases("a", {});
}

TEST_F(PreloadIpcTest, ItOutlivesItsMakerAndDiesWithTheLast) {
  const auto exporter = Exporter({Await("never")});
  const auto importer =
      Start("importer", {.steps = {Open("y", "x"), Await("killed"),
                                   absl::StrCat("get y ", kBytes),
                                   Open("again", "x"), Await("never")}});
  ASSERT_TRUE(importer->AwaitOut("ipc-open y 0\n")) << importer->Err();
  exporter->Signal(SIGKILL);
  EXPECT_NE(exporter->AwaitExit(), 0);
  ExpectLeases("a", {kBytes});
  Touch("killed");
  ASSERT_TRUE(importer->AwaitOut("ipc-open again 0\n")) << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat("get y 0 ", 3 * kBytes, "\n")));
  importer->Signal(SIGKILL);
  EXPECT_NE(importer->AwaitExit(), 0);
  ExpectLeases("a", {});
}

// To wait for the work would destroy the capture.
TEST_F(PreloadIpcTest, WhatIsClosedDuringACaptureIsUnmappedAfterIt) {
  const auto exporter = Exporter({Await("opened")});
  const auto importer =
      Start("importer",
            {.steps = {Open("y", "x"), "begin-capture 0", "ipc-close y",
                       Open("again", "x"), "same y again", "ipc-close again",
                       Await("captured"), "end-capture 0", Await("end")}});
  ASSERT_TRUE(importer->AwaitOut("ipc-close again 0\n")) << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr("begin-capture 0 0\nipc-close y 0\n"
                        "ipc-open again 0\nsame 1\nipc-close again 0\n"));
  Touch("opened");
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
  ExpectLeases("a", {kBytes});
  Touch("captured");
  ASSERT_TRUE(importer->AwaitOut("end-capture 0 0\n")) << importer->Err();
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
}

// The rest of the process's memory is lent, and that which others have is not.
TEST_F(PreloadIpcTest, WhatOthersMayTouchStaysOnTheDevice) {
  const auto exporter = Exporter({absl::StrCat("alloc z ", kBytes),
                                  absl::StrCat("put z ", kBytes, " 7"),
                                  Await("go"), absl::StrCat("get z ", kBytes),
                                  absl::StrCat("get x ", kBytes)});
  ASSERT_TRUE(exporter->AwaitOut("put z 0\n")) << exporter->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  const auto other =
      TakeTheDevice("other-ends", 400 * kMiB);  // kBytes are away
  const auto importer = Start(
      "importer", {.steps = {Open("y", "x"), absl::StrCat("get y ", kBytes)},
                   .run_options = {"--no-park"}});
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat("get y 0 ", 3 * kBytes, "\n")));
  EXPECT_TRUE(component::Await([&] { return Evicted() == kBytes; }))
      << "nobody was woken";
  for (const char* const file : {"other-ends", "go"}) Touch(file);
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
  EXPECT_THAT(exporter->Out(),
              HasSubstr(absl::StrCat("get z 0 ", 7 * kBytes, "\nget x 0 ",
                                     3 * kBytes, "\n")));
  EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
}

TEST_F(PreloadIpcTest, GuaranteesOfOthersForbidIt) {
  MakeTenant("owner", 480 * kMiB);
  const auto program =
      Start("program",
            {.steps = {"alloc w 2097152", "put w 2097152 1", Await("parked"),
                       absl::StrCat("alloc x ", kBytes), HandleOf("x"),
                       HandleOf("w"), absl::StrCat("put x ", kBytes, " 3"),
                       absl::StrCat("get x ", kBytes)},
             .run_options = Soon()});
  ASSERT_TRUE(program->AwaitOut("put w 0\n")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("parked");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(),
              HasSubstr(absl::StrCat("alloc x 0\nipc-handle x ", kOutOfMemory,
                                     "\nipc-handle w 0\nput x 0\nget x 0 ",
                                     3 * kBytes, "\n")));
  EXPECT_THAT(program->Err(), HasSubstr("guarantees of others rest on"));
}

// The other process gets a name for them all.
TEST_F(PreloadIpcTest, AHandleOfSeveralSlabsIsImportedUnderGmbRun) {
  const std::string bytes = absl::StrCat(kBytes);
  const Words map = {"reserve v " + bytes, "map h v " + bytes,
                     "access v " + bytes};
  Words steps = {absl::StrCat("create h ", kBytes, " 1")};
  steps.insert(steps.end(), map.begin(), map.end());
  const Words more = {"put v " + bytes + " 3",
                      "export h " + File("h"),
                      "import own " + File("h"),
                      "same-handle own h",
                      Await("imported"),
                      "get v " + bytes,
                      "release own",
                      "release h",
                      "unmap v " + bytes,
                      Await("end")};
  steps.insert(steps.end(), more.begin(), more.end());
  const auto exporter = Start("exporter", {.steps = steps});
  ASSERT_TRUE(exporter->AwaitOut("same-handle 1\n")) << exporter->Err();
  ASSERT_GT(MostSlabs(), 1u);

  // The first one is gone before it is imported anew.
  steps = {"import first " + File("h"), "release first",
           "import h " + File("h"),     "import again " + File("h"),
           "same-handle again h",       "properties h"};
  steps.insert(steps.end(), map.begin(), map.end());
  const Words use = {
      "get v " + bytes, "put v " + bytes + " 5", "export h",
      "retain found v", "same-handle found h",   Await("released"),
      "get v " + bytes, "unmap v " + bytes,      "release h",
      "release again",  "release found",         "release h",
      Await("end")};
  steps.insert(steps.end(), use.begin(), use.end());
  const auto importer = Start("importer", {.steps = steps});
  ASSERT_TRUE(importer->AwaitOut("retain found 0\nsame-handle 1\n"))
      << importer->Out() << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat(
                  "import first 0\nrelease first 0\nimport h 0\n"
                  "import again 0\nsame-handle 1\nproperties h 0 "
                  "0 0\nreserve v 0\nmap h 0\naccess v 0\nget v 0 ",
                  3 * kBytes, "\nput v 0\nexport h ", kInvalid, "\n")));
  ExpectLeases("a", {kBytes});  // charged once
  const auto stranger =
      Start("stranger", {.steps = {"import h " + File("h")}, .tenant = "b"});
  EXPECT_EQ(stranger->AwaitExit(), 0) << stranger->Err();
  EXPECT_THAT(stranger->Out(),
              HasSubstr(absl::StrCat("import h ", kInvalidHandle, "\n")));

  Touch("imported");
  ASSERT_TRUE(exporter->AwaitOut("unmap v 0\n")) << exporter->Err();
  EXPECT_THAT(exporter->Out(),
              HasSubstr(absl::StrCat("get v 0 ", 5 * kBytes, "\n")));
  ExpectLeases("a", {kBytes});  // the importer has it still
  Touch("released");
  ASSERT_TRUE(importer->AwaitOut("release found 0\nrelease h"))
      << importer->Out() << importer->Err();
  EXPECT_THAT(importer->Out(), HasSubstr(absl::StrCat(
                                   "get v 0 ", 5 * kBytes,
                                   "\nunmap v 0\nrelease h 0\nrelease again 0\n"
                                   "release found 0\nrelease h ",
                                   kInvalid)));
  ExpectLeases("a", {});
  Touch("end");
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
}

// PyTorch's expandable segments. The lease has ended, but not the memory.
TEST_F(PreloadIpcTest, AHandlesDescriptorIsMemoryToAnotherProcess) {
  constexpr uint64_t kHandle = 16 * kMiB;  // one slab of this pool
  const auto exporter =
      Start("exporter",
            {.steps = {absl::StrCat("create h ", kHandle, " 1"),
                       absl::StrCat("create private ", kHandle),
                       absl::StrCat("reserve v ", kHandle),
                       absl::StrCat("map h v ", kHandle),
                       absl::StrCat("access v ", kHandle),
                       absl::StrCat("put v ", kHandle, " 3"),
                       absl::StrCat("export h ", File("h")), "export private",
                       Await("imported"), absl::StrCat("get v ", kHandle),
                       "release private", "release h",
                       absl::StrCat("unmap v ", kHandle), Await("end")}});
  ASSERT_TRUE(exporter->AwaitOut("export private")) << exporter->Err();
  EXPECT_THAT(
      exporter->Out(),
      HasSubstr(absl::StrCat("export h 0\nexport private ", kInvalid, "\n")));
  const auto importer =
      Start("importer",
            {.steps = {absl::StrCat("import k ", File("h")),
                       absl::StrCat("reserve w ", kHandle),
                       absl::StrCat("map k w ", kHandle),
                       absl::StrCat("access w ", kHandle),
                       absl::StrCat("get w ", kHandle),
                       absl::StrCat("put w ", kHandle, " 5"), Await("released"),
                       absl::StrCat("get w ", kHandle), Await("end")}});
  ASSERT_TRUE(importer->AwaitOut("put w 0\n")) << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat("get w 0 ", 3 * kHandle)));
  Touch("imported");
  ASSERT_TRUE(exporter->AwaitOut("unmap v 0\n")) << exporter->Err();
  EXPECT_THAT(exporter->Out(),
              HasSubstr(absl::StrCat("get v 0 ", 5 * kHandle)));
  ExpectLeases("a", {});
  Touch("released");
  ASSERT_TRUE(importer->AwaitOut("put w 0\nget w 0")) << importer->Err();
  EXPECT_THAT(importer->Out(),
              HasSubstr(absl::StrCat("put w 0\nget w 0 ", 5 * kHandle)));
  Touch("end");
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
}

// The context that is current at the close does not matter.
TEST_F(PreloadIpcTest, ACloseWaitsForTheWorkOfAllContexts) {
  const auto exporter = Exporter({Await("end")});
  const auto importer = Start(
      "importer", {.steps = {Open("y", "x"), "work y 1", "stream 1",
                             "new-context 0", "ipc-close y", "stream 1"}});
  EXPECT_EQ(importer->AwaitExit(), 0) << importer->Err();
  EXPECT_EQ(importer->Out(),
            "ipc-open y 0\nwork y 0\nstream 1 600\nnew-context 0 0\n"
            "ipc-close y 0\nstream 1 0\nend\n");
  Touch("end");
  EXPECT_EQ(exporter->AwaitExit(), 0) << exporter->Err();
}

}  // namespace
}  // namespace gmb::component
