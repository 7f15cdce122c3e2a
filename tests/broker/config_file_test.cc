#include "broker/config/config_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "broker/config/settings.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kFileGiB = uint64_t{1} << 30;

BrokerConfig FromFile(const std::string& text) {
  BrokerConfig config;
  const absl::Status parsed = ParseConfigFile(text, "gmb.yaml", &config);
  EXPECT_TRUE(parsed.ok()) << parsed;
  return config;
}

std::string FileError(const std::string& text) {
  BrokerConfig config;
  const absl::Status parsed = ParseConfigFile(text, "gmb.yaml", &config);
  EXPECT_FALSE(parsed.ok()) << text;
  return std::string(parsed.message());
}

TEST(ConfigFile, EverySettingAndEveryFieldOfATenantIsUnderstood) {
  const BrokerConfig config = FromFile(R"(
devices:
  - cuda:0
  - device: cuda:1
    pool: 120GiB
    headroom: 2GiB
    float: 512MiB
  - host:4GiB
pool: 90%
headroom: 8GiB
float: 1GiB
host_pool: 8GiB
pause: false
lend_parked_guarantees: true
back_ahead: 2GiB
unmap_grace: 500ms
kill_grace: 1m
allow_ipc: false
socket_dir: /tmp/gmb
state_dir: /tmp/state
admin_group: 0
default_tenant: batch
max_handles: 4096
max_sessions: 64
reuse_for: 2s
drain_deadline: 10s
log_format: json
log_level: warning
tenants:
  - name: a
    guarantee: 25%
    limit: 60GiB
    weight: 2.5
    max_handles: 100
    max_sessions: 5
    may_terminate: true
    min_residency: 30s
    pause_grace: 500ms
    host_limit: 2GiB
    uids: [1000, root]
    socket: {owner: 1000, group: 0, mode: 0750}
    devices:
      cuda:1: {guarantee: 10GiB}
  - name: batch
)");
  ASSERT_THAT(config.devices, SizeIs(3));
  EXPECT_EQ(config.devices[1].pool, Amount::Bytes(120 * kFileGiB));
  EXPECT_EQ(config.devices[1].headroom_bytes, 2 * kFileGiB);
  EXPECT_EQ(config.devices[1].float_bytes, kFileGiB / 2);
  EXPECT_EQ(config.devices[0].pool, std::nullopt);
  EXPECT_EQ(config.pool, Amount::Fraction(0.9));
  EXPECT_EQ(config.host_pool_bytes, 8 * kFileGiB);
  EXPECT_FALSE(config.pause);
  EXPECT_TRUE(config.lend_parked_guarantees);
  EXPECT_EQ(config.back_ahead_bytes_per_second, 2 * kFileGiB);
  EXPECT_EQ(config.unmap_grace, absl::Milliseconds(500));
  EXPECT_EQ(config.kill_grace, absl::Minutes(1));
  EXPECT_EQ(config.default_tenant, "batch");
  EXPECT_EQ(config.log.level, LogLevel::kWarning);

  ASSERT_THAT(config.tenants, SizeIs(2));
  const TenantConfig& a = config.tenants[0];
  EXPECT_EQ(a.policy.quota,
            (quota::TenantQuota{Amount::Fraction(0.25),
                                Amount::Bytes(60 * kFileGiB), 2.5}));
  EXPECT_EQ(a.policy.device_quotas.at("cuda:1"),
            (quota::TenantQuota{Amount::Bytes(10 * kFileGiB),
                                Amount::Bytes(60 * kFileGiB), 2.5}));
  EXPECT_EQ(a.policy.max_handles, 100u);
  EXPECT_EQ(a.policy.max_sessions, 5u);
  EXPECT_EQ(a.policy.reclaim,
            (ReclaimPolicy{.may_terminate = true,
                           .min_residency = std::chrono::seconds(30),
                           .pause_grace = std::chrono::milliseconds(500),
                           .host_limit = Amount::Bytes(2 * kFileGiB)}));
  EXPECT_THAT(a.policy.uids, ElementsAre(1000u, 0u));
  EXPECT_EQ(a.socket.owner, uid_t{1000});
  EXPECT_EQ(a.socket.mode, mode_t{0750});
  const TenantConfig& batch = config.tenants[1];
  EXPECT_EQ(batch.policy.quota,
            (quota::TenantQuota{Amount::Bytes(0), Amount::Fraction(1), 1}));
  EXPECT_EQ(batch.policy.max_handles, 4096u);
  EXPECT_EQ(batch.policy.reclaim, ReclaimPolicy());
  EXPECT_EQ(batch.socket.mode, mode_t{0700});
}

TEST(ConfigFile, AnEmptyFileIsAllDefaults) {
  for (const char* text : {"", "\n", "# only a comment\n", "---\n", "{}"})
    EXPECT_THAT(FromFile(text).tenants, IsEmpty());
}

TEST(ConfigFile, ErrorsNameFileLineColumnAndField) {
  EXPECT_EQ(FileError("tenants:\n  - name: a\n    limit: 60GiB\n  - name: b\n  "
                      "  guarantee: -1GiB\n")
                .substr(0, 41),
            "gmb.yaml:5:16: tenants[1].guarantee: a si");
  EXPECT_THAT(FileError("pool: 90%\nmax_handles: x\n"),
              StartsWith("gmb.yaml:2:14: max_handles: write"));
  EXPECT_THAT(FileError("devices:\n  - cuda:0\n  - gpu:1\n"),
              StartsWith("gmb.yaml:3:5: devices[1]: a device is"));
  EXPECT_THAT(
      FileError("tenants:\n  - {name: a, socket: {mode: 0999}}\n"),
      StartsWith("gmb.yaml:2:30: tenants[0].socket.mode: a mode is octal"));
}

// A unit that was forgotten would be a limit of nothing.
TEST(ConfigFile, AmountsThatComeToNothingAreRefused) {
  EXPECT_THAT(FileError("tenants:\n  - {name: a, limit: 75}\n"),
              AllOf(StartsWith("gmb.yaml:2:22: tenants[0].limit: an amount "
                               "below 2.0 MiB comes to nothing"),
                    HasSubstr("write 75% or 75GiB, or 0")));
  for (const char* const field : {"guarantee", "host_limit"}) {
    EXPECT_THAT(FileError(absl::StrCat("tenants:\n  - {name: a, ", field,
                                       ": 2048KB}\n")),
                HasSubstr(absl::StrCat("tenants[0].", field, ": an amount")));
  }
  EXPECT_THAT(FileError("pool: 90\n"), HasSubstr("write 90% or 90GiB"));
  BrokerConfig config;
  EXPECT_TRUE(
      ParseConfigFile("tenants:\n  - {name: a, guarantee: 0, limit: 2MiB}\n",
                      "x", &config)
          .ok());
}

TEST(ConfigFile, AllErrorsAreSaidAtOnce) {
  const std::vector<std::string> lines =
      absl::StrSplit(FileError("pool: lots\nheadroom: 1\ntenants:\n  - name: "
                               "A\n    weight: 0\n  - limit: 5%\n"),
                     '\n');
  EXPECT_THAT(
      lines,
      ElementsAre(
          StartsWith("gmb.yaml:1:7: pool: "),
          StartsWith("gmb.yaml:4:11: tenants[0].name: "),
          StartsWith("gmb.yaml:5:13: tenants[0].weight: "),
          StartsWith(
              "gmb.yaml:6:5: tenants[1].name: every tenant has a name")));
}

TEST(ConfigFile, UnknownKeysAreRefusedWithTheNearestKnownOne) {
  EXPECT_THAT(
      FileError("headrom: 1GiB\n"),
      StartsWith("gmb.yaml:1:1: headrom: unknown key; did you mean headroom?"));
  EXPECT_THAT(FileError("tenants:\n  - name: a\n    garantee: 1GiB\n"),
              StartsWith("gmb.yaml:3:5: tenants[0].garantee: unknown key; did "
                         "you mean guarantee?"));
  EXPECT_THAT(
      FileError("zebra: 1\n"),
      AllOf(HasSubstr("unknown key; known are "), HasSubstr("tenants")));
  EXPECT_THAT(FileError("fresh_state: true\n"), HasSubstr("unknown key"));
  EXPECT_THAT(FileError("<<: {pool: 1}\n"), HasSubstr("unknown key"));
}

TEST(ConfigFile, WrongShapesAreRefused) {
  EXPECT_THAT(FileError("- a\n"), HasSubstr("must be keys with values"));
  EXPECT_THAT(FileError("just words\n"), HasSubstr("must be keys with values"));
  EXPECT_THAT(FileError("pool:\n"), HasSubstr("pool: has no value"));
  EXPECT_THAT(FileError("pool: [1]\n"),
              HasSubstr("pool: must be a single value"));
  EXPECT_THAT(FileError("tenants: a\n"), HasSubstr("tenants: must be a list"));
  EXPECT_THAT(FileError("tenants:\n  - a\n"),
              HasSubstr("tenants[0]: must be keys"));
  EXPECT_THAT(FileError("tenants:\n  - {name: a, uids: 5}\n"),
              HasSubstr("tenants[0].uids: must be a list"));
  EXPECT_THAT(FileError("? [a]\n: b\n"), HasSubstr("a key must be a word"));
  EXPECT_THAT(FileError("pool: 1\npool: 2\n"),
              HasSubstr("gmb.yaml:2:1: pool: the key is given twice"));
  EXPECT_THAT(FileError("pool: 1\n---\npool: 2\n"),
              StartsWith("gmb.yaml:2:1: what begins here"));
  EXPECT_THAT(FileError("pool: [1\n"), StartsWith("gmb.yaml:"));
  EXPECT_THAT(FileError("devices:\n  - {pool: 1GiB}\n"),
              HasSubstr("devices[0].device: say which"));
  EXPECT_THAT(FileError("devices:\n  - {device: \"host:1GiB\", pool: 1GiB}\n"),
              HasSubstr("leave pool and headroom out"));
}

TEST(ConfigFile, BadValuesOfTenantsAreRefused) {
  const auto tenant = [](const std::string& fields) {
    return FileError("tenants:\n  - {name: a, " + fields + "}\n");
  };
  EXPECT_THAT(
      tenant("guarantee: 50%, limit: 25%"),
      HasSubstr("tenants[0].guarantee: the guarantee is above the limit"));
  EXPECT_THAT(tenant("guarantee: 2GiB, limit: 1GiB"),
              HasSubstr("above the limit"));
  EXPECT_THAT(tenant("guarantee: nan"), HasSubstr("tenants[0].guarantee"));
  EXPECT_THAT(tenant("guarantee: 0.25"), HasSubstr("without a unit"));
  EXPECT_THAT(tenant("limit: 100.5%"), HasSubstr("above 100%"));
  EXPECT_THAT(tenant("weight: -1"), HasSubstr("above 0"));
  EXPECT_THAT(tenant("weight: inf"), HasSubstr("above 0"));
  EXPECT_THAT(tenant("max_handles: 0"), HasSubstr("from 1"));
  EXPECT_THAT(tenant("uids: [-1]"), HasSubstr("uids[0]"));
  EXPECT_THAT(tenant("uids: [1, 1]"), HasSubstr("given twice"));
  EXPECT_THAT(tenant("socket: {mode: 01777}"), HasSubstr("octal"));
  EXPECT_THAT(tenant("socket: {owner: nobody-of-that-name}"),
              HasSubstr("socket.owner"));
  EXPECT_THAT(
      tenant("devices: {host-0: {gaurantee: 1}}"),
      HasSubstr(
          "devices.host-0.gaurantee: unknown key; did you mean guarantee?"));
}

TEST(ConfigFile, BadValuesOfReclaimNameFileLineAndField) {
  const auto tenant = [](const std::string& field) {
    return FileError("tenants:\n  - name: a\n    " + field + "\n");
  };
  EXPECT_THAT(tenant("may_terminate: yes"),
              StartsWith("gmb.yaml:3:20: tenants[0].may_terminate: write true "
                         "or false"));
  EXPECT_THAT(tenant("min_residency: 61m"),
              StartsWith("gmb.yaml:3:20: tenants[0].min_residency: write a "
                         "time with its unit"));
  EXPECT_THAT(tenant("pause_grace: -1s"),
              StartsWith("gmb.yaml:3:18: tenants[0].pause_grace: "));
  EXPECT_THAT(tenant("host_limit: 101%"),
              StartsWith("gmb.yaml:3:17: tenants[0].host_limit: "));
  EXPECT_THAT(tenant("host_limits: 1%"), HasSubstr("did you mean host_limit?"));
  EXPECT_THAT(FileError("host_pool: 3MiB\n"),
              StartsWith("gmb.yaml:1:12: host_pool: the size of the host pool "
                         "is a multiple of 2MiB: write 2MiB or 4MiB"));
  EXPECT_THAT(FileError("pause: perhaps\n"),
              StartsWith("gmb.yaml:1:8: pause: write true or false"));
}

TEST(ConfigFile, NamesOfTenantsAreChecked) {
  for (const std::string& name : std::vector<std::string>{
           "", "A", "-a", ".a", "a b", "a/b", "a\\nb", std::string(64, 'a'),
           std::string(10'000, 'a')}) {
    const std::string error =
        FileError("tenants:\n  - name: \"" + name + "\"\n");
    EXPECT_THAT(error, HasSubstr("a tenant's name is 1 to 63"));
    EXPECT_LT(error.size(), 400u);
  }
  EXPECT_THAT(FileError("tenants:\n  - name: a\n  - name: a\n"),
              HasSubstr("tenants[1].name: there is another tenant"));
  FromFile("tenants:\n  - name: 0-a_b.c\n  - name: " + std::string(63, 'x') +
           "\n");
}

TEST(ConfigFile, NestingAndAliasesCannotBlowUp) {
  BrokerConfig config;
  EXPECT_FALSE(ParseConfigFile(std::string(100'000, '['), "x", &config).ok());
  EXPECT_FALSE(ParseConfigFile(std::string(100'000, '{'), "x", &config).ok());
  std::string bomb = "a0: &a0 [x, x]\n";
  for (int i = 1; i < 40; ++i) {
    absl::StrAppend(&bomb, "a", i, ": &a", i, " [*a", i - 1, ", *a", i - 1,
                    "]\n");
  }
  EXPECT_FALSE(ParseConfigFile(bomb + "tenants: *a39\n", "x", &config).ok());
  EXPECT_FALSE(ParseConfigFile("tenants: &t [*t]\n", "x", &config).ok());
  // Text on which yaml-cpp 0.7's own loader of several documents never ends.
  EXPECT_FALSE(ParseConfigFile(",\n", "x", &config).ok());
  EXPECT_FALSE(ParseConfigFile("pool: 1\n  )\n)\n", "x", &config).ok());
}

TEST(ConfigFile, AnyTextIsReadOrRefused) {
  const std::string good =
      "devices: [\"host:1GiB\", {device: \"cuda:0\", pool: 90%}]\npool: "
      "1GiB\ntenants:\n  - name: a\n    guarantee: "
      "25%\n    limit: 2GiB\n    uids: [1, 2]\n    host_limit: 5%\n    "
      "pause_grace: 1s\n    may_terminate: true\n    socket: {mode: 0750}\n    "
      "devices:\n      host-0: {weight: 2}\n";
  const std::string bits = "{}[]:,-#&*!|>'\"%@`? \n\t0aA\xff";
  std::mt19937_64 random(5);
  for (int i = 0; i < 5'000; ++i) {
    std::string text = good;
    for (uint64_t n = random() % 8 + 1; n > 0 && !text.empty(); --n) {
      const size_t at = random() % text.size();
      switch (random() % 3) {
        case 0:
          text[at] = bits[random() % bits.size()];
          break;
        case 1:
          text.insert(at, 1, bits[random() % bits.size()]);
          break;
        default:
          text.erase(at, random() % 16 + 1);
      }
    }
    BrokerConfig config;
    const absl::Status parsed = ParseConfigFile(text, "x", &config);
    if (!parsed.ok()) {
      EXPECT_EQ(parsed.code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(ConfigFile, TheDocumentationNamesEverySettingAndItsDefault) {
  std::ifstream file(GMB_SOURCE_DIR "/docs/configuration.md");
  const std::string text{std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>()};
  for (const Setting& setting : Settings()) {
    if (setting.flag_only) {
      EXPECT_THAT(text, HasSubstr(setting.Flag()));
      continue;
    }
    const size_t row = text.find(absl::StrCat("| `", setting.name, "` |"));
    ASSERT_NE(row, std::string::npos) << setting.name;
    const std::string line = text.substr(row, text.find('\n', row) - row);
    const std::string start =
        absl::StrCat(setting.default_text, "").substr(0, 5);
    EXPECT_THAT(line, HasSubstr(start));
  }
}

}  // namespace
}  // namespace gmb::broker
