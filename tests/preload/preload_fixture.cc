#include "tests/preload/preload_fixture.h"

#include <algorithm>
#include <fstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"

namespace gmb::component {

void PreloadTest::SetUp() {
  StartGpuBroker();
  MakeTenant("a", 0, 256 * kMiB);
}

void PreloadTest::StartGpuBroker(Words devices, Words flags) {
  BrokerOptions options;
  options.devices = std::move(devices);
  options.flags = {"--pool", absl::StrCat(512 * kMiB)};
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  options.wrapper = WithFakeDriver({});
  StartBroker(options);
}

Words PreloadTest::WithFakeDriver(Words words) {
  words.insert(words.begin(), {"env", "FAKE_CUDA_DEVICES=2",
                               "LD_LIBRARY_PATH=" FAKE_DRIVER_DIR});
  return words;
}

std::unique_ptr<Program> PreloadTest::Start(const std::string& name,
                                            const ProgramRun& run) const {
  Words words = WithFakeDriver({GMB_PROGRAM, "--socket-dir", SocketDir(), "run",
                                "--tenant", run.tenant, "--verbose"});
  words.insert(words.end(), run.run_options.begin(), run.run_options.end());
  words.insert(words.end(), {"--", "env"});
  words.insert(words.end(), run.environment.begin(), run.environment.end());
  constexpr const char* kPrograms[] = {
      PRELOAD_PROGRAM, PRELOAD_RUN_TIME_PROGRAM, PRELOAD_NO_PIE_PROGRAM};
  words.emplace_back(run.how == "linked" ? PRELOAD_LINKED_PROGRAM
                                         : kPrograms[run.how_built]);
  words.push_back(run.how);
  words.insert(words.end(), run.steps.begin(), run.steps.end());
  return std::make_unique<Program>(Directory(), name, words);
}

Words PreloadTest::Run(const ProgramRun& run) const {
  const std::unique_ptr<Program> program = Start("program", run);
  EXPECT_EQ(program->AwaitExit(), 0) << program->Err();
  return absl::StrSplit(program->Out(), '\n', absl::SkipEmpty());
}

void PreloadTest::Touch(const std::string& name) const {
  std::ofstream(Directory() + "/" + name) << "go";
}

std::string PreloadTest::Await(const std::string& name) const {
  return absl::StrCat("await ", Directory(), "/", name);
}

void PreloadTest::AwaitGate(const std::string& tenant,
                            v1::SessionInfo::Gate gate) const {
  v1::SessionInfo::Gate now = v1::SessionInfo::GATE_UNSPECIFIED;
  const bool as_expected = component::Await([&] {
    v1::ListSessionsRequest request;
    request.set_tenant(tenant);
    const auto sessions = admin().ListSessions(request);
    if (!sessions.ok() || sessions->sessions_size() != 1) return false;
    now = sessions->sessions(0).gate();
    return now == gate;
  });
  EXPECT_TRUE(as_expected) << v1::SessionInfo::Gate_Name(now);
}

void PreloadTest::ExpectLeases(const std::string& tenant,
                               std::vector<uint64_t> bytes) const {
  std::sort(bytes.begin(), bytes.end());
  std::vector<uint64_t> now;
  const bool as_expected = component::Await([&] {
    v1::ListLeasesRequest request;
    request.set_tenant(tenant);
    const auto leases = admin().ListLeases(request);
    if (!leases.ok()) return false;
    now.clear();
    for (const auto& lease : leases->leases()) now.push_back(lease.bytes());
    std::sort(now.begin(), now.end());
    return now == bytes;
  });
  EXPECT_TRUE(as_expected) << "leases of " << tenant << ": "
                           << absl::StrJoin(now, " ") << ", not "
                           << absl::StrJoin(bytes, " ");
}

}  // namespace gmb::component
