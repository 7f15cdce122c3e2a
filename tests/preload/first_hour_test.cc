// `gmb run` in the first hour: what servers, shells, children and other libraries
// make of it.
#include <sys/types.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint64_t kSome = 4 * kMiB;

class FirstHourTest : public PreloadTest {
 protected:
  // Both GPUs, and a list of the processes that use them.
  void SetUp() override {
    BrokerOptions options;
    options.devices = {"cuda:0", "cuda:1"};
    options.flags = {"--pool", absl::StrCat(256 * kMiB)};
    options.wrapper = WithFakeDriver({});
    options.wrapper.insert(options.wrapper.begin() + 1,
                           "FAKE_NVML_PROCESSES=" + Listed());
    StartBroker(options);
    MakeTenant("a");
  }

  [[nodiscard]] std::string Listed() const { return Directory() + "/listed"; }
  [[nodiscard]] v1::ListSessionsResponse Sessions() const {
    const auto sessions = admin().ListSessions({});
    return sessions.ok() ? *sessions : v1::ListSessionsResponse();
  }
  // That of `gmb run` itself ends as it becomes the program.
  [[nodiscard]] bool AwaitSessions(int count) const {
    return component::Await(
        [&] { return Sessions().sessions_size() == count; });
  }
  // The devices of a's leases, by their bytes.
  [[nodiscard]] std::map<uint64_t, std::string> DevicesOfLeases() const {
    std::map<uint64_t, std::string> devices;
    const auto leases = admin().ListLeases({});
    if (!leases.ok()) return devices;
    for (const auto& lease : leases->leases())
      devices[lease.bytes()] = lease.device();
    return devices;
  }
  [[nodiscard]] std::string Uuid(int device) const {
    return Status().pools(device).device().uuid();
  }
  // `gmb run` of these words.
  [[nodiscard]] std::unique_ptr<Program> RunWords(const std::string& name,
                                                  const Words& program) const {
    Words words = WithFakeDriver({GMB_PROGRAM, "--socket-dir", SocketDir(),
                                  "run", "--tenant", "a", "--quiet", "--"});
    words.insert(words.end(), program.begin(), program.end());
    return std::make_unique<Program>(Directory(), name, words);
  }
  // A shell's words for the program with these steps.
  static std::string Shell(const Words& steps) {
    return absl::StrCat(PRELOAD_PROGRAM, " proc '", absl::StrJoin(steps, "' '"),
                        "'");
  }
};

struct Visible {
  std::string devices;  // "UUID1" stands for that of the second GPU
  int first = 0;        // the program's device 0
  int second = -1;      // and 1; -1: it has none
};

TEST_F(FirstHourTest, VisibleDevicesByIndexByUuidAndReordered) {
  for (const Visible& visible :
       {Visible{"1", 1}, Visible{"UUID1", 1}, Visible{"1,0", 1, 0},
        Visible{"UUID1,UUID0", 1, 0}, Visible{"0,1", 0, 1}}) {
    SCOPED_TRACE(visible.devices);
    ProgramRun run{.steps = {absl::StrCat("alloc x ", kSome)}};
    if (visible.second >= 0) {
      run.steps.insert(run.steps.end(),
                       {"device 1", absl::StrCat("alloc y ", 2 * kSome)});
    }
    run.steps.insert(run.steps.end(), {"write x 4096", Await("end")});
    run.environment = {absl::StrCat(
        "CUDA_VISIBLE_DEVICES=",
        absl::StrReplaceAll(visible.devices,
                            {{"UUID0", Uuid(0)}, {"UUID1", Uuid(1)}}))};
    const auto program = Start("program", run);
    ASSERT_TRUE(program->AwaitOut("write x 0")) << program->Err();
    std::map<uint64_t, std::string> expected{{kSome, Uuid(visible.first)}};
    if (visible.second >= 0) expected[2 * kSome] = Uuid(visible.second);
    EXPECT_EQ(DevicesOfLeases(), expected);
    Touch("end");
    EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
    std::filesystem::remove(Directory() + "/end");
    ExpectLeases("a", {});
  }
}

TEST_F(FirstHourTest, BeforeItsFirstAllocationAProgramHasNothingOfOurs) {
  const auto shell =
      RunWords("shell", {"sh", "-c",
                         "cat /proc/$$/maps; ls /proc/$$/task; echo up; "
                         "while [ ! -e " +
                             Directory() + "/end ]; do sleep 0.02; done"});
  ASSERT_TRUE(shell->AwaitOut("up")) << shell->Err();
  const std::string one_thread = absl::StrCat("\n", shell->pid(), "\nup\n");
  EXPECT_THAT(shell->Out(), HasSubstr("libgmb_preload.so"));
  EXPECT_THAT(shell->Out(), Not(HasSubstr("libgmb.so")));
  EXPECT_THAT(shell->Out(), Not(HasSubstr("libgrpc")));
  EXPECT_THAT(shell->Out(), HasSubstr(one_thread));
  // Contexts and streams, as a compiler of kernels has, and no memory.
  const auto program =
      Start("program", {.steps = {"add-stream", Await("end")}});
  ASSERT_TRUE(program->AwaitOut("add-stream")) << program->Err();
  EXPECT_TRUE(AwaitSessions(0));
  Touch("end");
  EXPECT_EQ(shell->AwaitExit(), 0);
  EXPECT_EQ(program->AwaitExit(), 0);
}

// As a server starts a runner, ends it, and starts another one.
TEST_F(FirstHourTest, ARunnerThatAServerStartsLeasesByItself) {
  const auto server = RunWords(
      "server", {"sh", "-c",
                 absl::StrCat("for i in 1 2; do setsid ",
                              Shell({absl::StrCat("alloc x ", kSome),
                                     Await("end-") + "$i"}),
                              " & wait; echo over $i; done; echo served")});
  int32_t killed = 0;
  for (const char* const turn : {"1", "2"}) {
    // `gmb run` itself has a session for a moment, and the runner before may
    // still be in the list when its server goes on.
    ExpectLeases("a", {kSome});
    v1::ListSessionsResponse sessions;
    ASSERT_TRUE(component::Await([&] {
      sessions = Sessions();
      return sessions.sessions_size() == 1 &&
             sessions.sessions(0).pid() != killed;
    })) << server->Err();
    ExpectLeases("a", {kSome});
    killed = sessions.sessions(0).pid();
    EXPECT_NE(killed, server->pid());
    ASSERT_EQ(::kill(killed, SIGKILL), 0);
    ASSERT_TRUE(server->AwaitOut(absl::StrCat("over ", turn)));
  }
  EXPECT_EQ(server->AwaitExit(), 0);
  ExpectLeases("a", {});
}

TEST_F(FirstHourTest, AChildWithACleanEnvironmentIsShownAsOutside) {
  const auto server = RunWords(
      "server", {"env", "-i", "LD_LIBRARY_PATH=" FAKE_DRIVER_DIR, "sh", "-c",
                 absl::StrCat("exec ", Shell({absl::StrCat("alloc x ", kSome),
                                              "write x 4096", Await("end")}))});
  ASSERT_TRUE(server->AwaitOut("write x 0")) << server->Err();
  EXPECT_TRUE(AwaitSessions(0));
  const auto client = Start(
      "client", {.steps = {absl::StrCat("alloc x ", kSome), Await("end")}});
  ASSERT_TRUE(client->AwaitOut("alloc x 0")) << client->Err();
  std::ofstream(Listed()) << server->pid() << ' ' << 900 * kMiB << '\n'
                          << client->pid() << ' ' << 500 * kMiB << '\n';
  const std::string line = absl::StrCat("outside, pid ", server->pid(),
                                        " preload_program: 900.00 MiB of ");
  EXPECT_TRUE(component::Await([&] {
    return Gmb({"session", "list"}).out.find(line) != std::string::npos;
  })) << Gmb({"session", "list"}).out;
  const std::string client_line = absl::StrCat("outside, pid ", client->pid());
  for (const Words& command : {Words{"session", "list"}, Words{"status"}}) {
    const std::string said = Gmb(command).out;
    EXPECT_THAT(said, HasSubstr(line));
    EXPECT_THAT(said, Not(HasSubstr(client_line)));
  }
  EXPECT_THAT(Gmb({"session", "list", "--tenant", "a"}).out,
              Not(HasSubstr("outside")));
  EXPECT_THAT(Gmb({"doctor"}).out,
              HasSubstr(absl::StrCat("outside, pid ", server->pid())));
  Touch("end");
  EXPECT_EQ(server->AwaitExit(), 0);
  EXPECT_EQ(client->AwaitExit(), 0);
}

TEST_F(FirstHourTest, MemoryThatNobodyIsSeenToUseIsNamedWithoutABroker) {
  std::ofstream(Listed()) << getpid() << " " << (uint64_t{10} << 30) << "\n";
  Words doctor = WithFakeDriver({GMB_PROGRAM, "doctor", "--json",
                                 "--socket-dir", SocketDir(), "--keeper",
                                 Directory() + "/place/keeper.sock"});
  doctor.insert(
      doctor.begin() + 1,
      {"FAKE_NVML_PROCESSES=" + Listed(),
       "FAKE_NVML_GRAPHICS=" + Directory() + "/draw",
       absl::StrCat("FAKE_NVML_USED=", (uint64_t{140} << 30) + 4096)});
  const auto said = [&](const std::string& name) {
    Program command(Directory(), name, doctor);
    EXPECT_EQ(command.AwaitExit(), 1);  // there is no such keeper
    return command.Out();
  };
  const std::string orphaned =
      absl::StrCat("130.00 GiB of ", Uuid(1), " are used by no process");
  // The broker that serves these GPUs has books of its own.
  EXPECT_THAT(said("served"), Not(HasSubstr(orphaned)));
  StopBroker();
  const std::string orphans = said("orphans");
  EXPECT_THAT(orphans, HasSubstr(orphaned));
  EXPECT_THAT(orphans,
              HasSubstr(absl::StrCat("gmb keeper drop --socket ", Directory(),
                                     "/place/keeper.sock")));
  // Those that draw are processes too, and one may use as much as it likes where
  // NVML does not tell.
  std::ofstream(Directory() + "/draw") << "7 " << (uint64_t{30} << 30) << "\n";
  EXPECT_THAT(said("draws"), HasSubstr("100.00 GiB of"));
  std::ofstream(Directory() + "/draw") << "7 " << ~uint64_t{0} << "\n";
  EXPECT_THAT(said("untold"), Not(HasSubstr("used by no process")));
}

TEST_F(FirstHourTest, APidNamespaceOfItsOwnIsNoneOfItsBusiness) {
  Words words = WithFakeDriver({"unshare",
                                "--user",
                                "--map-root-user",
                                "--pid",
                                "--fork",
                                "--mount-proc",
                                GMB_PROGRAM,
                                "--socket-dir",
                                SocketDir(),
                                "run",
                                "--tenant",
                                "a",
                                "--quiet",
                                "--",
                                PRELOAD_PROGRAM,
                                "proc",
                                absl::StrCat("alloc x ", kSome),
                                "write x 4096",
                                Await("end"),
                                "free x"});
  Program allowed(Directory(), "allowed",
                  {"unshare", "--user", "--map-root-user", "--pid", "--fork",
                   "--mount-proc", "true"});
  if (allowed.AwaitExit() != 0)
    GTEST_SKIP() << "this machine lets nobody make a PID namespace";
  Program program(Directory(), "program", words);
  ASSERT_TRUE(program.AwaitOut("write x 0")) << program.Err();
  ExpectLeases("a", {kSome});
  Touch("end");
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_THAT(program.Out(), HasSubstr("free x 0"));
  ExpectLeases("a", {});
}

#ifdef PRELOAD_APART
// As it is installed; the program's is the distribution's.
TEST_F(FirstHourTest, AProgramThatHasAGrpcGoesOnWithIt) {
  Program program(
      Directory(), "grpc",
      WithFakeDriver({GMB_PROGRAM, "--socket-dir", SocketDir(), "run",
                      "--tenant", "a", "--quiet", "--preload", PRELOAD_APART,
                      "--", PRELOAD_GRPC_PROGRAM, Directory() + "/its.sock"}));
  EXPECT_EQ(program.AwaitExit(), 0) << program.Err();
  EXPECT_EQ(program.Out(), "grpc 1 alloc 0\ngrpc 1 alloc 0\n");
}

TEST_F(FirstHourTest, AProgramWithARunTimeOfItsOwnIsServed) {
  ProgramRun run{
      .steps = {absl::StrCat("alloc x ", kSome), "write x 4096", "free x"},
      .run_options = {"--preload", PRELOAD_APART},
      .how_built = ProgramRun::kExportsARunTime};
  EXPECT_THAT(Run(run),
              ElementsAre("alloc x 0", "write x 0", "free x 0", "end"));
}
#endif

// As it lies in a build.
TEST_F(FirstHourTest, WhereTheRunTimesCannotBeKeptApartItSaysSo) {
  const auto program =
      Start("program", {.steps = {absl::StrCat("alloc x ", kSome)},
                        .environment = {"GMB_RUN_VERBOSE=0"},
                        .how_built = ProgramRun::kExportsARunTime});
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  EXPECT_THAT(program->Out(), Not(HasSubstr("alloc x 0")));
  EXPECT_THAT(program->Err(), HasSubstr("exports a C++ run time of its own"));
}

// It has a place of its own for std::call_once, and nothing more.
TEST_F(FirstHourTest, AProgramWithoutPieIsServedFromABuildToo) {
  EXPECT_THAT(Run({.steps = {absl::StrCat("alloc x ", kSome), "free x"},
                   .how_built = ProgramRun::kWithoutPie}),
              ElementsAre("alloc x 0", "free x 0", "end"));
}

#ifdef JEMALLOC
TEST_F(FirstHourTest, JemallocInFrontOrBehindIsBorne) {
  std::vector<std::string> ours = {PRELOAD_LIBRARY};
#ifdef PRELOAD_APART
  ours.emplace_back(PRELOAD_APART);  // with a C++ run time of its own
#endif
  for (const std::string& library : ours) {
    for (const std::string& order :
         {JEMALLOC ":" + library, library + ":" JEMALLOC}) {
      SCOPED_TRACE(order);
      ProgramRun run{
          .steps = {absl::StrCat("alloc x ", kSome), "write x 4096", "free x"}};
      // From where it runs.
      run.environment = {
          "--chdir=" + Directory(), "LD_PRELOAD=" + order,
          "GMB_SOCKET_DIR=" + std::filesystem::path(TenantDir("a"))
                                  .lexically_relative(Directory())
                                  .string()};
      EXPECT_THAT(Run(run),
                  ElementsAre("alloc x 0", "write x 0", "free x 0", "end"));
    }
  }
}
#endif

}  // namespace
}  // namespace gmb::component
