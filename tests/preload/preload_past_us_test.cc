// A library that calls the driver past ours is found, and named.
#include <elf.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "gmb/c_api.h"
#include "tests/preload/preload_gate_fixture.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Whether the library's dynamic section is read-only: then the loader leaves its
// pointers as they are in the file.
class PreloadPastUsTest : public PreloadGateTest,
                          public ::testing::WithParamInterface<bool> {
 protected:
  [[nodiscard]] std::string Library() const {
    std::ifstream file(BOUND_PAST_US, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(file), {});
    Elf64_Ehdr header{};
    std::memcpy(&header, bytes.data(), sizeof(header));
    for (int i = 0; i < header.e_phnum; ++i) {
      char* const at = bytes.data() + header.e_phoff + i * sizeof(Elf64_Phdr);
      Elf64_Phdr segment{};
      std::memcpy(&segment, at, sizeof(segment));
      if (segment.p_type == PT_DYNAMIC && GetParam()) segment.p_flags = PF_R;
      std::memcpy(at, &segment, sizeof(segment));
    }
    std::string path = Directory() + "/libpast_us.so";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
};

TEST_P(PreloadPastUsTest, ALibraryThatCallsTheDriverPastUsIsNamed) {
  ProgramRun run{.steps = {absl::StrCat("alloc x ", kBytes),
                           absl::StrCat("put x ", kBytes, " 3"), Await("open"),
                           absl::StrCat("deepbind ", Library()), Await("end"),
                           absl::StrCat("get x ", kBytes)},
                 .run_options = Soon()};
  // Ends the program if anybody allocates while the loader waits for it.
  run.environment = {"LD_PRELOAD=" PRELOAD_LIBRARY ":" LOADER_WATCH};
  const auto program = Start("program", run);
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  Touch("open");
  ASSERT_TRUE(program->AwaitOut("deepbind 0")) << program->Out();
  // It is parked, and looked at once more before anything is taken.
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  EXPECT_THAT(Gmb({"session", "list"}).out,
              HasSubstr("libpast_us.so calls the driver past"));
  EXPECT_THAT(Gmb({"why", "a"}).out,
              AllOf(HasSubstr("never parks: "), HasSubstr("libpast_us.so")));
  Touch("end");
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), HasSubstr(absl::StrCat("get x 0 ", 3 * kBytes)));
}

INSTANTIATE_TEST_SUITE_P(Dynamic, PreloadPastUsTest, ::testing::Bool(),
                         [](const auto& test) {
                           return test.param ? "ReadOnly" : "Relocated";
                         });

// A library that calls nothing of the driver by its name, but looks all up.
class PreloadLooksUpTest : public PreloadGateTest {
 protected:
  // With its memory parked it opens a library, which looks the driver up.
  [[nodiscard]] std::unique_ptr<Program> Open(const std::string& step) const {
    auto program =
        Start("program",
              {.steps = {absl::StrCat("alloc x ", kBytes),
                         absl::StrCat("put x ", kBytes, " 3"), Await("open"),
                         step, Await("end"), absl::StrCat("get x ", kBytes)},
               .run_options = Soon()});
    EXPECT_TRUE(program->AwaitOut("put x 0")) << program->Err();
    AwaitGate("a", v1::SessionInfo::GATE_PARKED);
    Touch("open");
    const std::string opened = step.substr(0, step.find(' ')) + " 0\n";
    EXPECT_TRUE(program->AwaitOut(opened)) << program->Out();
    return program;
  }
  // The preload library, beside a client library of two parts: `first`, and what
  // the build has.
  [[nodiscard]] std::string PreloadWithFirst(const std::string& first) const {
    const std::string preload = Directory() + "/lib/libgmb_preload.so";
    const std::string parts = Directory() + "/lib/gmb/run/";
    const std::string client = absl::StrCat("libgmb-client.so.", GMB_ABI_MAJOR);
    std::filesystem::create_directories(parts);
    std::filesystem::create_symlink(PRELOAD_LIBRARY, preload);
    std::filesystem::create_symlink(first, parts + "first.so");
    std::filesystem::create_symlink(CLIENT_LIBRARY, parts + client);
    std::ofstream(parts + "order") << "first.so\n" << client << "\n";
    return preload;
  }
  void End(Program* program) const {
    Touch("end");
    EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
    EXPECT_THAT(program->Out(),
                HasSubstr(absl::StrCat("get x 0 ", 3 * kBytes)));
  }
};

TEST_F(PreloadLooksUpTest, ALibraryInAScopeOfItsOwnIsNamed) {
  const auto program = Open("deepbind " LOOKS_UP_PAST_US);
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  EXPECT_THAT(Gmb({"why", "a"}).out,
              HasSubstr("libgmb_looks_up_past_us.so looks functions up past"));
  End(program.get());
}

TEST_F(PreloadLooksUpTest, OneThatIsOpenedWhileOursAreIsNotOurs) {
  ProgramRun run{.steps = {absl::StrCat("alloc x ", kBytes),
                           absl::StrCat("put x ", kBytes, " 3"), Await("end"),
                           absl::StrCat("get x ", kBytes)},
                 .run_options = Soon()};
  run.run_options.insert(run.run_options.end(),
                         {"--preload", PreloadWithFirst(OPENS_ANOTHER)});
  run.environment = {"OPENS_ANOTHER=" LOOKS_UP_PAST_US};
  const auto program = Start("program", run);
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  EXPECT_THAT(Gmb({"why", "a"}).out,
              HasSubstr("libgmb_looks_up_past_us.so looks functions up past"));
  End(program.get());
}

#ifdef PRELOAD_APART
// As they are installed: each in a scope of its own.
TEST_F(PreloadLooksUpTest, OursAreNotNamed) {
  ProgramRun run{.steps = {absl::StrCat("alloc x ", kBytes),
                           absl::StrCat("put x ", kBytes, " 3"), Await("end"),
                           absl::StrCat("get x ", kBytes)},
                 .run_options = Soon()};
  run.run_options.insert(run.run_options.end(), {"--preload", PRELOAD_APART});
  const auto program = Start("program", run);
  ASSERT_TRUE(program->AwaitOut("put x 0")) << program->Err();
  TakeTheDeviceForAWhile("other-ends");
  End(program.get());
}
#endif

TEST_F(PreloadLooksUpTest, OneThatTakesWhatComesNextIsNeverParked) {
  const auto program = Open("open " LOOKS_NEXT);
  ExpectNothingToTake();
  AwaitGate("a", v1::SessionInfo::GATE_OFF);
  EXPECT_THAT(Gmb({"why", "a"}).out, HasSubstr("it looked a function up past"));
  End(program.get());
}

// The driver's own waits touch no memory.
TEST_F(PreloadLooksUpTest, OneThatTakesTheWaitsThatComeNextIsLent) {
  const auto program = Open("open " WRAPS_WAITS);
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  End(program.get());
}

TEST_F(PreloadLooksUpTest, OneThatIsOpenedAsUsualIsLent) {
  const auto program = Open("open " LOOKS_UP_PAST_US);
  AwaitGate("a", v1::SessionInfo::GATE_PARKED);
  TakeTheDeviceForAWhile("other-ends");
  End(program.get());
}

}  // namespace
}  // namespace gmb::component
