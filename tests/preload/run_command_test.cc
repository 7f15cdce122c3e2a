#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/text/json.h"
#include "tests/preload/preload_fixture.h"

// `gmb run` itself: what it needs, what it hands over, how it ends.

namespace gmb::component {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class RunCommandTest : public PreloadTest {
 protected:
  Said RunWith(Words options, const Words& program) const {
    options.insert(options.begin(), "run");
    options.emplace_back("--");
    options.insert(options.end(), program.begin(), program.end());
    return Gmb(options);
  }
};

TEST_F(RunCommandTest, TheProgramsOutputAndExitCodeAreItsOwn) {
  const Said said = RunWith({"--tenant", "a", "--quiet"},
                            {"sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, "out\n");
  EXPECT_EQ(said.err, "err\n");
}

TEST_F(RunCommandTest, ItSaysInOneLineOnWhichTermsTheProgramRuns) {
  const std::string begin =
      absl::StrCat("gmb run: tenant a has at most 256.00 MiB of ",
                   Pool().device().uuid(), " (256.00 MiB now); lends nothing");
  EXPECT_EQ(RunWith({"--tenant", "a"}, {"true"}).err,
            begin +
                ", since the broker has no host pool (its log says why, event "
                "host_pool)\n");
  EXPECT_EQ(RunWith({"--tenant", "a", "--no-park"}, {"true"}).err,
            begin + " (--no-park)\n");
  EXPECT_EQ(RunWith({"--tenant", "a", "--quiet"}, {"true"}).err, "");
}

TEST_F(RunCommandTest, ArgumentsThatLookLikeOptionsAreThePrograms) {
  const Said said =
      RunWith({"--tenant", "a"}, {"printf", "%s|", "--output", "json",
                                  "--x=", "-h", "--", "status", "a b"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.out, "--output|json|--x=|-h|--|status|a b|");
}

TEST_F(RunCommandTest, ItHandsOverTheBrokerAndItsOptions) {
  const Said said = RunWith(
      {"--tenant", "a", "--wait", "1m", "--fallback", "native", "--verbose"},
      {"env"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("GMB_SOCKET_DIR=" + TenantDir("a") + "\n"));
  EXPECT_THAT(said.out, HasSubstr("GMB_RUN_WAIT=60000ms\n"));
  EXPECT_THAT(said.out, HasSubstr("GMB_RUN_FALLBACK=native\n"));
  EXPECT_THAT(said.out, HasSubstr("GMB_RUN_VERBOSE=1\n"));
  EXPECT_THAT(said.out, HasSubstr("LD_PRELOAD=" PRELOAD_LIBRARY "\n"));
  EXPECT_THAT(said.out, ::testing::Not(HasSubstr("GRPC_VERBOSITY")));
}

TEST_F(RunCommandTest, WhatIsSaidCountsAndNotWhatARunAroundItSaid) {
  const Said said =
      RunWith({"--tenant", "a", "--fallback", "native"},
              {GMB_PROGRAM, "--socket-dir", SocketDir(), "run", "--tenant", "a",
               "--fallback", "fail", "--", "env"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_THAT(said.out, HasSubstr("GMB_RUN_FALLBACK=fail\n"));
}

// The inner one finds the outer one's tenant in its environment.
TEST_F(RunCommandTest, OneInsideAnotherMayBeAnotherTenant) {
  MakeTenant("b");
  const auto inside = [&](const std::string& tenant) {
    return RunWith({"--tenant", "a", "--quiet"},
                   {GMB_PROGRAM, "run", "--tenant", tenant, "--", "env"});
  };
  for (const std::string& tenant : Words{"a", "b"}) {
    const Said said = inside(tenant);
    EXPECT_EQ(said.exit_code, 0) << said.err;
    EXPECT_THAT(said.out,
                HasSubstr("GMB_SOCKET_DIR=" + TenantDir(tenant) + "\n"));
    EXPECT_THAT(said.err, HasSubstr("gmb run: tenant " + tenant + " has"));
  }
  EXPECT_THAT(inside("nobody").err, HasSubstr("NO_SUCH_TENANT"));
}

TEST_F(RunCommandTest, WhatWasPreloadedBeforeStaysBehindIt) {
  Program program(
      Directory(), "run",
      {"env", "LD_PRELOAD=libm.so.6", "GRPC_VERBOSITY=NONE", GMB_PROGRAM,
       "--socket-dir", SocketDir(), "run", "--tenant", "a", "--", "env"});
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_THAT(program.Out(),
              HasSubstr("LD_PRELOAD=" PRELOAD_LIBRARY ":libm.so.6\n"));
  EXPECT_THAT(program.Out(), HasSubstr("GRPC_VERBOSITY=NONE\n"));
}

TEST_F(RunCommandTest, NoDescriptorOfOursReachesTheProgram) {
  Program alone(Directory(), "alone", {"ls", "/proc/self/fd"});
  ASSERT_EQ(alone.AwaitExit(), 0);
  const Said said = RunWith({"--tenant", "a"}, {"ls", "/proc/self/fd"});
  EXPECT_EQ(said.exit_code, 0) << said.err;
  EXPECT_EQ(said.out, alone.Out());
}

TEST_F(RunCommandTest, AProgramThatIsNotThereOrCannotStart) {
  const Said none = RunWith({"--tenant", "a"}, {"no-such-program"});
  EXPECT_EQ(none.exit_code, 127);
  EXPECT_THAT(none.err, HasSubstr("cannot run no-such-program"));
  const Said folder = RunWith({"--tenant", "a"}, {Directory()});
  EXPECT_EQ(folder.exit_code, 126);
  const Said nothing = Gmb({"run", "--tenant", "a"});
  EXPECT_EQ(nothing.exit_code, 2);
  EXPECT_THAT(nothing.err, HasSubstr("PROGRAM"));
}

// Its code ends with 7.
std::string StaticProgram() {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_entry = 0x400000 + sizeof(header) + sizeof(Elf64_Phdr);
  header.e_phoff = sizeof(header);
  header.e_ehsize = sizeof(header);
  header.e_phentsize = sizeof(Elf64_Phdr);
  header.e_phnum = 1;
  const std::string code("\xbf\x07\0\0\0\xb8\x3c\0\0\0\x0f\x05", 12);
  Elf64_Phdr load{};
  load.p_type = PT_LOAD;
  load.p_flags = PF_R | PF_X;
  load.p_vaddr = 0x400000;
  load.p_filesz = sizeof(header) + sizeof(load) + code.size();
  load.p_memsz = load.p_filesz;
  load.p_align = 0x1000;
  std::string bytes(reinterpret_cast<const char*>(&header), sizeof(header));
  bytes.append(reinterpret_cast<const char*>(&load), sizeof(load));
  return bytes + code;
}

TEST_F(RunCommandTest, AProgramThatTheLibraryIsNotInIsSaidAndRuns) {
  const std::string program = Directory() + "/static";
  std::ofstream(program, std::ios::binary) << StaticProgram();
  ASSERT_EQ(::chmod(program.c_str(), 0755), 0);
  const Said said = RunWith({"--tenant", "a"}, {program});
  EXPECT_EQ(said.exit_code, 7) << said.err;
  EXPECT_THAT(said.err, HasSubstr("static is linked statically"));
  EXPECT_THAT(said.err, HasSubstr("running it all the same"));
}

// As bundles that bring their own C library start their programs.
TEST_F(RunCommandTest, AProgramThatTheDynamicLinkerIsGivenHasTheLibrary) {
  const std::string linker = "/lib64/ld-linux-x86-64.so.2";
  if (!std::filesystem::exists(linker)) GTEST_SKIP() << "no " << linker;
  Program program(
      Directory(), "linker",
      WithFakeDriver({GMB_PROGRAM, "--socket-dir", SocketDir(), "run",
                      "--tenant", "a", "--", linker, PRELOAD_PROGRAM, "proc",
                      absl::StrCat("alloc x ", 4 * kMiB), Await("end")}));
  ASSERT_TRUE(program.AwaitOut("alloc x 0")) << program.Err();
  ExpectLeases("a", {4 * kMiB});
  Touch("end");
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_THAT(program.Err(), ::testing::Not(HasSubstr("not leased")));
}

TEST_F(RunCommandTest, AScriptOfAnImageWithMuslIsRefusedInASentence) {
  const std::string linker = Directory() + "/ld-musl-x86_64.so.1";
  std::string bytes = StaticProgram();
  auto* const load =
      reinterpret_cast<Elf64_Phdr*>(bytes.data() + sizeof(Elf64_Ehdr));
  load->p_type = PT_INTERP;
  load->p_offset = bytes.size();
  load->p_filesz = linker.size() + 1;
  const std::string shell = Directory() + "/sh";
  std::ofstream(shell, std::ios::binary) << bytes << linker << '\0';
  ASSERT_EQ(::chmod(shell.c_str(), 0755), 0);
  const std::string script = Directory() + "/start";
  std::ofstream(script) << "#!" << shell << "\n";
  ASSERT_EQ(::chmod(script.c_str(), 0755), 0);
  const Said said = RunWith({"--tenant", "a"}, {script});
  EXPECT_EQ(said.exit_code, 126);
  EXPECT_THAT(said.err, HasSubstr("sh is linked to musl"));
}

TEST_F(RunCommandTest, WhatCannotBeRunIsSaidInJsonToo) {
  const Said none = Gmb(
      {"--output", "json", "run", "--tenant", "a", "--", "no-such-program"});
  EXPECT_EQ(none.exit_code, 127);
  EXPECT_THAT(none.err, StartsWith(R"({"error":{"code":"NOT_FOUND",)"));
  EXPECT_THAT(none.err, HasSubstr("cannot run no-such-program: No such file"));
}

TEST_F(RunCommandTest, WithoutABrokerItEndsOrGoesOnAsAsked) {
  StopBroker();
  const Said ends = RunWith({"--tenant", "a"}, {"echo", "started"});
  EXPECT_EQ(ends.exit_code, 3);
  EXPECT_EQ(ends.out, "");
  EXPECT_THAT(ends.err, HasSubstr("no broker answers in " + SocketDir()));
  const Said goes_on =
      RunWith({"--tenant", "a", "--fallback", "native"}, {"echo", "started"});
  EXPECT_EQ(goes_on.exit_code, 0);
  EXPECT_EQ(goes_on.out, "started\n");
  EXPECT_THAT(goes_on.err, HasSubstr("going on with the driver's own memory"));
  StartGpuBroker();
}

TEST_F(RunCommandTest, GoingOnWithoutABrokerIsSaidInJsonToo) {
  StopBroker();
  const Said said =
      Gmb({"--output", "json", "run", "--tenant", "a", "--fallback", "native",
           "--", "sh", "-c", "echo out; echo err >&2; exit 7"});
  EXPECT_EQ(said.exit_code, 7);
  EXPECT_EQ(said.out, "out\n");
  const Words lines = absl::StrSplit(said.err, '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), 2) << said.err;
  EXPECT_EQ(lines[1], "err");
  const cli::Json warning = cli::Json::parse(lines[0]).at("warning");
  EXPECT_EQ(warning.at("code"), "UNAVAILABLE");
  EXPECT_THAT(
      warning.at("message").get<std::string>(),
      ::testing::AllOf(
          StartsWith("no broker answers in " + SocketDir()),
          ::testing::EndsWith("; going on with the driver's own memory")));
  StartGpuBroker();
}

TEST_F(RunCommandTest, TheBrokerIsAskedBeforeThePreloadLibraryIsLookedFor) {
  const Words options = {"--tenant", "nobody", "--preload", "/no/such.so"};
  EXPECT_THAT(RunWith(options, {"echo"}).err, HasSubstr("NO_SUCH_TENANT"));
  StopBroker();
  const Said no_broker = RunWith(options, {"echo"});
  EXPECT_EQ(no_broker.exit_code, 3);
  EXPECT_THAT(no_broker.err, HasSubstr("no broker answers in " + SocketDir()));
  StartGpuBroker();
}

TEST_F(RunCommandTest, AnotherTenantThanTheSocketSaysIsRefused) {
  for (const Words& options :
       {Words{"--tenant", "nobody"},
        Words{"--tenant", "nobody", "--fallback", "native"}}) {
    const Said said = RunWith(options, {"echo", "started"});
    EXPECT_EQ(said.exit_code, 1);
    EXPECT_EQ(said.out, "");
    EXPECT_THAT(said.err, HasSubstr("NO_SUCH_TENANT"));
  }
}

TEST_F(RunCommandTest, ThePreloadLibraryHasToBeUsable) {
  const Said missing = RunWith({"--tenant", "a", "--preload", "/no/such.so"},
                               {"echo", "started"});
  EXPECT_EQ(missing.exit_code, 1);
  EXPECT_THAT(missing.err, HasSubstr("no such preload library"));
  const std::string odd = Directory() + "/a b.so";
  std::filesystem::copy_file(PRELOAD_LIBRARY, odd);
  const Said spaced =
      RunWith({"--tenant", "a", "--preload", odd}, {"echo", "started"});
  EXPECT_EQ(spaced.exit_code, 1);
  EXPECT_THAT(spaced.err, HasSubstr("a space or a colon"));
}

}  // namespace
}  // namespace gmb::component
