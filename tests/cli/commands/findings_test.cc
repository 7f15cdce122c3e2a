#include "client/cli/commands/findings.h"

#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "client/cli/demo/temp_dir.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cli/as_ordinary_user.h"

namespace gmb::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string AllMessages(const Findings& findings) {
  std::string text;
  for (const v1::Finding& finding : findings) text += finding.message() + "\n";
  return text;
}

TEST(FindingsTest, ADirectoryThatIsNotThereIsAProblemWithAWayOut) {
  const Findings findings = CheckSockets("/nonexistent/gmb");
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(AnyProblem(findings));
  EXPECT_THAT(findings[0].message(), HasSubstr("GMB_SOCKET_DIR"));
}

TEST(FindingsTest, ADirectoryWithoutSocketsNamesEachThatIsMissing) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok());
  const std::string text = AllMessages(CheckSockets(dir->path()));
  EXPECT_THAT(text, HasSubstr("handle.sock"));
  EXPECT_THAT(text, HasSubstr("gmb.sock"));
  EXPECT_THAT(text, HasSubstr("start gmbd with this socket directory"));
}

TEST(FindingsTest, AFileInTheWayOfASocketIsAProblem) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok());
  std::ofstream(dir->path() + "/gmb.sock") << "x";
  EXPECT_THAT(AllMessages(CheckSockets(dir->path())),
              HasSubstr("gmb.sock is no socket"));
}

TEST(FindingsTest, ADirectoryThatEverybodyMayWriteIsAProblem) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok());
  ASSERT_EQ(chmod(dir->path().c_str(), 0777), 0);
  EXPECT_THAT(AllMessages(CheckSockets(dir->path())), HasSubstr("chmod 0755"));
}

TEST(FindingsTest, AnAdminDirectoryThatEverybodyMayEnterIsAProblem) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok());
  ASSERT_EQ(mkdir((dir->path() + "/admin").c_str(), 0755), 0);
  ASSERT_EQ(chmod((dir->path() + "/admin").c_str(), 0755), 0);
  EXPECT_THAT(AllMessages(CheckSockets(dir->path())), HasSubstr("chmod 0750"));
}

TEST(FindingsTest, WhatOnlyOperatorsMaySeeIsNoProblemOfOtherUsers) {
  const absl::StatusOr<TempDir> dir = TempDir::Make();
  ASSERT_TRUE(dir.ok());
  const std::string admin = dir->path() + "/admin";
  ASSERT_EQ(chmod(dir->path().c_str(), 0755), 0);
  ASSERT_EQ(mkdir(admin.c_str(), 0750), 0);
  ASSERT_EQ(chmod(admin.c_str(), 0), 0);
  const std::string said = AsOrdinaryUser([&] {
    std::string text;
    for (const v1::Finding& finding : CheckSockets(dir->path())) {
      if (finding.message().find("operators") == std::string::npos) continue;
      absl::StrAppend(&text, v1::Finding::Severity_Name(finding.severity()),
                      ": ", finding.message(), "\n");
    }
    return text;
  });
  ASSERT_EQ(chmod(admin.c_str(), 0750), 0);
  EXPECT_THAT(said, HasSubstr("WARNING: cannot see the operators' sockets"));
  EXPECT_THAT(said, Not(HasSubstr("PROBLEM")));
}

TEST(FindingsTest, AMissingDriverIsAProblemOnlyWhereAGpuIsExpected) {
  internal::DeviceProbe probe;
  probe.problem = "no driver";
  EXPECT_FALSE(AnyProblem(CheckDriver(probe, /*gpu_expected=*/false)));
  EXPECT_TRUE(AnyProblem(CheckDriver(probe, /*gpu_expected=*/true)));
}

TEST(FindingsTest, AGpuThatCannotBeUsedIsNotCalledMissing) {
  internal::DeviceProbe probe;
  probe.problem = "no driver";
  EXPECT_THAT(AllMessages(CheckDriver(probe, /*gpu_expected=*/false)),
              HasSubstr("shows no GPU: no driver"));
  probe.machine_has_gpu = true;
  const Findings unused = CheckDriver(probe, /*gpu_expected=*/false);
  EXPECT_THAT(AllMessages(unused),
              HasSubstr("this machine's GPU cannot be used: no driver"));
  EXPECT_EQ(unused[0].severity(), v1::Finding::WARNING);
}

TEST(FindingsTest, AWorkingDriverNamesItsGpus) {
  internal::DeviceProbe probe;
  probe.driver_version = "580.1";
  probe.gpus.push_back({.uuid = "GPU-1",
                        .name = "NVIDIA H200",
                        .total_bytes = uint64_t{1} << 37});
  const Findings findings = CheckDriver(probe, true);
  EXPECT_FALSE(AnyProblem(findings));
  EXPECT_THAT(AllMessages(findings), HasSubstr("GPU-1 NVIDIA H200 128.00 GiB"));
}

TEST(FindingsTest, LongFindingsAreWrappedUnderTheirSubject) {
  std::ostringstream out;
  Terminal terminal;
  terminal.columns = 64;
  PrintFindings(
      {MakeFinding(
          v1::Finding::WARNING, "limits",
          "a sentence that does not fit into one line of this terminal")},
      terminal, out);
  EXPECT_EQ(out.str(),
            "warning  limits         a sentence that does not fit into one\n"
            "                        line of this terminal\n");
}

TEST(FindingsTest, AFindingAboutADeviceStandsUnderItsUuid) {
  std::ostringstream out;
  PrintFindings({MakeFinding(v1::Finding::OK, "GPU-8f5c0000", "fine"),
                 MakeFinding(v1::Finding::OK, "GPU-8f5c0000-1111", "fine")},
                Terminal(), out);
  EXPECT_EQ(out.str(),
            "ok       GPU-8f5c0000   fine\n"
            "ok       GPU-8f5c0000-1111  \n"
            "                        fine\n");
}

}  // namespace
}  // namespace gmb::cli
