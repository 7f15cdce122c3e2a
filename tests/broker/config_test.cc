#include "broker/config/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <initializer_list>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "broker/config/settings.h"
#include "tests/broker/temp_directory.h"

namespace gmb::broker {
namespace {

using quota::Amount;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr uint64_t kGiB = uint64_t{1} << 30;

Flags Parse(std::initializer_list<const char*> arguments) {
  std::vector<const char*> argv = {"gmbd"};
  argv.insert(argv.end(), arguments);
  return ParseFlags(static_cast<int>(argv.size()), argv.data());
}

BrokerConfig Load(std::initializer_list<const char*> arguments) {
  const Flags flags = Parse(arguments);
  EXPECT_EQ(flags.exit_code, -1) << flags.text;
  const auto config = LoadConfig(flags);
  EXPECT_TRUE(config.ok()) << config.status();
  return config.value_or(BrokerConfig());
}

std::string LoadError(std::initializer_list<const char*> arguments) {
  const auto config = LoadConfig(Parse(arguments));
  EXPECT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(config.status().message());
}

TEST(Flags, DefaultsAreThoseOfTheTable) {
  const BrokerConfig config = Load({"--device", "host:4GiB"});
  ASSERT_THAT(config.devices, SizeIs(1));
  EXPECT_EQ(config.devices[0].kind, device::DeviceKind::kHost);
  EXPECT_EQ(config.devices[0].name, "host-0");
  EXPECT_EQ(config.devices[0].host_bytes, 4 * kGiB);
  EXPECT_EQ(config.pool, Amount::Fraction(1));
  EXPECT_EQ(config.headroom_bytes, 6 * kGiB);
  EXPECT_EQ(config.max_handles, 32768u);
  EXPECT_EQ(config.reuse_for, absl::Seconds(5));
  EXPECT_EQ(config.drain_deadline, absl::Seconds(30));
  EXPECT_EQ(config.socket_dir, "/run/gmb");
  EXPECT_FALSE(config.fresh_state);
  EXPECT_EQ(config.host_pool_bytes, std::nullopt);
  EXPECT_TRUE(config.pause);
  EXPECT_FALSE(config.lend_parked_guarantees);
  EXPECT_EQ(config.back_ahead_bytes_per_second, 0u);
  EXPECT_EQ(config.unmap_grace, absl::Seconds(2));
  EXPECT_EQ(config.kill_grace, absl::Seconds(5));
  // The defaults that the help names are accepted and change nothing.
  for (const Setting& setting : Settings()) {
    BrokerConfig again;
    const absl::Status applied = setting.apply(setting.default_text, &again);
    if (setting.placeholder == nullptr ||
        absl::string_view(setting.default_text) == "none" ||
        absl::string_view(setting.name) == "float" ||
        absl::string_view(setting.name) == "host_pool") {
      continue;
    }
    EXPECT_TRUE(applied.ok()) << setting.name;
    EXPECT_EQ(again.pool, config.pool);
    EXPECT_EQ(again.headroom_bytes, config.headroom_bytes);
    EXPECT_EQ(again.max_sessions, config.max_sessions);
    EXPECT_EQ(again.drain_deadline, config.drain_deadline);
    EXPECT_EQ(again.state_dir, config.state_dir);
  }
}

TEST(Flags, AllOfThemAreUnderstood) {
  const BrokerConfig config =
      Load({"--device",
            "host:1GiB",
            "--device=GPU-8f5c1c2e-0000-1111-2222-333344445555",
            "--device",
            "ipc:cuda:1",
            "--allow-ipc",
            "--pool",
            "90%",
            "--headroom",
            "8GiB",
            "--float=512MiB",
            "--host-pool",
            "8GiB",
            "--no-pause",
            "--lend-parked-guarantees",
            "--socket-dir",
            "/tmp/s/",
            "--state-dir",
            "/tmp/t",
            "--fresh-state",
            "--admin-group",
            "0",
            "--default-tenant",
            "a",
            "--max-handles",
            "100",
            "--max-sessions",
            "7",
            "--reuse-for",
            "0s",
            "--drain-deadline",
            "2m",
            "--log-format",
            "json",
            "--log-level",
            "debug"});
  ASSERT_THAT(config.devices, SizeIs(3));
  EXPECT_EQ(config.devices[1].kind, device::DeviceKind::kVmm);
  EXPECT_EQ(config.devices[2].kind, device::DeviceKind::kIpc);
  EXPECT_EQ(config.devices[2].name, "cuda:1");
  EXPECT_EQ(config.pool, Amount::Fraction(0.9));
  EXPECT_EQ(config.headroom_bytes, 8 * kGiB);
  EXPECT_EQ(config.float_bytes, kGiB / 2);
  EXPECT_EQ(config.host_pool_bytes, 8 * kGiB);
  EXPECT_FALSE(config.pause);
  EXPECT_TRUE(config.lend_parked_guarantees);
  EXPECT_EQ(config.socket_dir, "/tmp/s");
  EXPECT_TRUE(config.fresh_state);
  EXPECT_EQ(config.admin_group, gid_t{0});
  EXPECT_EQ(config.default_tenant, "a");
  EXPECT_EQ(config.max_handles, 100u);
  EXPECT_EQ(config.max_sessions, 7u);
  EXPECT_EQ(config.reuse_for, absl::ZeroDuration());
  EXPECT_EQ(config.drain_deadline, absl::Minutes(2));
  EXPECT_EQ(config.log.format, LogFormat::kJson);
  EXPECT_EQ(config.log.level, LogLevel::kDebug);
}

TEST(Flags, HelpTeachesAndNamesEverySetting) {
  const Flags flags = Parse({"--help"});
  EXPECT_EQ(flags.exit_code, 0);
  for (const Setting& setting : Settings())
    EXPECT_THAT(flags.text, HasSubstr(setting.Flag()));
  EXPECT_THAT(flags.text, AllOf(HasSubstr("Examples"), HasSubstr("host:4GiB"),
                                HasSubstr("Exit codes")));
  EXPECT_EQ(Parse({"--version"}).exit_code, 0);
  EXPECT_THAT(Parse({"--version"}).text, StartsWith("gmbd "));
}

TEST(Flags, UnknownFlagsAndMissingValuesExitWith2) {
  EXPECT_EQ(Parse({"--devise", "host:1GiB"}).exit_code, 2);
  EXPECT_EQ(Parse({"--device"}).exit_code, 2);
  EXPECT_EQ(Parse({"cuda:0"}).exit_code, 2);
  EXPECT_EQ(Parse({"--pool="}).exit_code, 2);
}

TEST(Flags, AllMistakesAreSaidAtOnce) {
  const std::string error = LoadError(
      {"--device", "host:1KiB", "--pool", "101%", "--headroom=-1GiB",
       "--max-handles", "0", "--reuse-for", "5", "--log-level", "loud"});
  EXPECT_THAT(error,
              AllOf(HasSubstr("--device: a host device has at least 2MiB"),
                    HasSubstr("--pool: a share cannot be above 100%"),
                    HasSubstr("--headroom: "),
                    HasSubstr("--max-handles: write a whole number from 1"),
                    HasSubstr("--reuse-for: write a time with its unit"),
                    HasSubstr("--log-level: ")));
}

TEST(Flags, ValuesOutOfBoundsAreRefused) {
  for (const auto& [flag, value] :
       std::vector<std::pair<const char*, const char*>>{
           {"--max-handles", "1000001"},
           {"--max-handles", "-1"},
           {"--max-handles", "1e3"},
           {"--max-sessions", "0"},
           {"--max-sessions", "4294967296"},
           {"--reuse-for", "61m"},
           {"--drain-deadline", "inf"},
           {"--headroom", "25%"},
           {"--headroom", "9223372036854775808"},
           {"--host-pool", "50%"},
           {"--host-pool", "66TiB"},
           {"--pool", "65TiB"},
           {"--pool", "nan%"},
           {"--default-tenant", "A b"},
           {"--admin-group", "no such group"},
           {"--admin-group", "4294967295"}}) {
    EXPECT_THAT(LoadError({"--device", "host:1GiB",
                           absl::StrCat(flag, "=", value).c_str()}),
                HasSubstr(flag));
  }
}

TEST(Flags, AHostPoolOfPartsOfAPageNamesTheSizesBesideIt) {
  const auto error = [](const char* size) {
    return LoadError({"--device", "host:1GiB", "--host-pool", size});
  };
  EXPECT_THAT(error("5MiB"), HasSubstr("--host-pool: the size of the host pool "
                                       "is a multiple of 2MiB: write 4MiB or "
                                       "6MiB; got \"5MiB\""));
  EXPECT_THAT(error("1"), HasSubstr("write 2MiB, or 0 for none; got"));
  EXPECT_EQ(
      Load({"--device", "host:1GiB", "--host-pool", "6MiB"}).host_pool_bytes,
      uint64_t{6} << 20);
}

TEST(Flags, DevicesAreChecked) {
  EXPECT_THAT(LoadError({}), HasSubstr("no device"));
  for (const char* device :
       {"", "gpu0", "cuda:", "cuda:x", "cuda:1000000", "GPU-", "GPU-x y",
        "host", "host:", "host:-1", "host:0", "ipc:host:1GiB",
        "ipc:", "host:65TiB", "cuda:0 "}) {
    EXPECT_THAT(LoadError({"--device", device}),
                AllOf(HasSubstr("--device: "), Not(HasSubstr("no device"))))
        << device;
  }
  EXPECT_THAT(LoadError({"--device", "cuda:0", "--device", "cuda:0"}),
              HasSubstr("given twice: cuda:0"));
  EXPECT_THAT(LoadError({"--device", "ipc:cuda:0"}), HasSubstr("--allow-ipc"));
  const BrokerConfig config =
      Load({"--device", "host:1GiB", "--device", "host:2GiB"});
  EXPECT_EQ(config.devices[1].name, "host-1");
}

TEST(Flags, SettingsOfGpusAloneAreSaidToHaveNoEffectOnHostDevices) {
  const auto warnings = [](std::initializer_list<const char*> arguments) {
    return Load(arguments).warnings;
  };
  EXPECT_THAT(warnings({"--device", "host:1GiB"}), IsEmpty());
  EXPECT_THAT(warnings({"--device", "host:1GiB", "--pool", "50%"}),
              ElementsAre(HasSubstr("a host device's pool is its size")));
  EXPECT_THAT(warnings({"--device", "host:1GiB", "--headroom", "1GiB"}),
              SizeIs(1));
  EXPECT_THAT(warnings({"--device", "host:1GiB", "--device", "cuda:0", "--pool",
                        "50%", "--headroom", "1GiB"}),
              IsEmpty());
}

TEST(Flags, ASocketDirectoryTooLongForItsSocketsIsRefused) {
  EXPECT_THAT(LoadError({"--device", "host:1GiB", "--socket-dir",
                         ("/" + std::string(100, 'x')).c_str()}),
              HasSubstr("socket_dir: "));
}

class ConfigOnDisk : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text,
                    mode_t mode = 0600) {
    std::ofstream(directory_ / name) << text;
    EXPECT_EQ(::chmod((directory_ / name).c_str(), mode), 0);
    return directory_ / name;
  }
  const TempDirectory directory_;
};

TEST_F(ConfigOnDisk, AFlagWinsOverTheFile) {
  const std::string file =
      Write("gmb.yaml",
            "devices: [\"host:1GiB\", \"host:2GiB\"]\nmax_sessions: "
            "5\nreuse_for: 1s\n");
  const BrokerConfig config = Load({"--config", file.c_str(), "--max-sessions",
                                    "9", "--device", "host:3GiB"});
  EXPECT_EQ(config.max_sessions, 9u);
  EXPECT_EQ(config.reuse_for, absl::Seconds(1));
  ASSERT_THAT(config.devices, SizeIs(1));
  EXPECT_EQ(config.devices[0].host_bytes, 3 * kGiB);
}

TEST_F(ConfigOnDisk, ASwitchOfTheFileIsTurnedEitherWayByItsFlags) {
  const std::string on = Write("on.yaml",
                               "devices: [\"host:1GiB\"]\npause: true\n"
                               "lend_parked_guarantees: true\n");
  const std::string off =
      Write("off.yaml", "devices: [\"host:1GiB\"]\npause: false\n");
  EXPECT_TRUE(Load({"--config", on.c_str()}).pause);
  EXPECT_FALSE(Load({"--config", off.c_str()}).pause);
  EXPECT_FALSE(Load({"--config", on.c_str(), "--no-pause"}).pause);
  EXPECT_FALSE(Load({"--config", on.c_str(), "--pause=off"}).pause);
  EXPECT_TRUE(Load({"--config", off.c_str(), "--pause"}).pause);
  EXPECT_FALSE(Load({"--config", on.c_str(), "--no-lend-parked-guarantees"})
                   .lend_parked_guarantees);
}

TEST_F(ConfigOnDisk, AHostLimitWithoutAHostPoolIsSaidToHaveNoEffect) {
  const std::string file =
      Write("gmb.yaml",
            "devices: [\"host:1GiB\"]\ntenants:\n"
            "  - {name: a, host_limit: 50%}\n  - {name: b}\n");
  EXPECT_THAT(Load({"--config", file.c_str(), "--host-pool", "0"}).warnings,
              ElementsAre(HasSubstr("tenant a: host_limit has no effect")));
  EXPECT_THAT(Load({"--config", file.c_str()}).warnings, IsEmpty());
  EXPECT_THAT(Load({"--config", file.c_str(), "--host-pool", "2MiB"}).warnings,
              IsEmpty());
}

TEST_F(ConfigOnDisk, MistakesInFileAndFlagsAreSaidTogether) {
  const std::string file = Write("gmb.yaml", "max_sessions: none\n");
  EXPECT_THAT(
      LoadError({"--config", file.c_str(), "--pool", "x"}),
      AllOf(HasSubstr("gmb.yaml:1:15: max_sessions: "), HasSubstr("--pool: ")));
}

TEST_F(ConfigOnDisk, AMissingOrHugeFileIsSaid) {
  const Flags flags = Parse(
      {"--device", "host:1GiB", "--config", (directory_ / "none").c_str()});
  EXPECT_THAT(std::string(LoadConfig(flags).status().message()),
              HasSubstr(directory_ / "none"));
  const std::string huge = Write("huge.yaml", std::string(5 << 20, '#'));
  EXPECT_THAT(LoadError({"--config", huge.c_str(), "--device", "host:1GiB"}),
              HasSubstr("at most 4 MiB"));
}

TEST_F(ConfigOnDisk, OverridesForADeviceThatIsNotThereAreRefused) {
  const std::string file =
      Write("gmb.yaml",
            "tenants:\n  - {name: a, devices: {\"cuda:7\": {limit: 1GiB}}}\n");
  EXPECT_THAT(LoadError({"--config", file.c_str(), "--device", "cuda:0"}),
              HasSubstr("no device \"cuda:7\""));
  Load({"--config", file.c_str(), "--device", "cuda:7"});
}

TEST_F(ConfigOnDisk, ATokenIsReadFromItsFileAndNeverShown) {
  Write("token", "0123456789abcdef-secret\n");
  const std::string file =
      Write("gmb.yaml", "tenants:\n  - {name: a, token_file: token}\n");
  const BrokerConfig config =
      Load({"--config", file.c_str(), "--device", "host:1GiB"});
  EXPECT_EQ(config.tenants[0].policy.token, "0123456789abcdef-secret");
  EXPECT_THAT(config.warnings, IsEmpty());
}

TEST_F(ConfigOnDisk, TokenFilesThatCannotServeAreRefused) {
  const std::string file =
      Write("gmb.yaml", "tenants:\n  - {name: a, token_file: token}\n");
  EXPECT_THAT(LoadError({"--config", file.c_str(), "--device", "host:1GiB"}),
              HasSubstr("gmb.yaml:2:27: tenants[0].token_file: cannot open"));
  for (const std::string& secret :
       {std::string("short-secret"), std::string(300, 'x')}) {
    Write("token", secret);
    const std::string error =
        LoadError({"--config", file.c_str(), "--device", "host:1GiB"});
    EXPECT_THAT(error, AllOf(HasSubstr("16 to 256 bytes"),
                             Not(HasSubstr(secret.substr(0, 12)))));
  }
  ASSERT_EQ(::unlink((directory_ / "token").c_str()), 0);
  ASSERT_EQ(::mkfifo((directory_ / "token").c_str(), 0600), 0);
  EXPECT_THAT(LoadError({"--config", file.c_str(), "--device", "host:1GiB"}),
              HasSubstr("not a regular file"));
}

TEST_F(ConfigOnDisk, ATokenForTwoTenantsIsRefusedAndOneForAllEyesIsWarnedOf) {
  Write("token", "0123456789abcdef", 0644);
  const std::string one =
      Write("one.yaml", "tenants:\n  - {name: a, token_file: token}\n");
  EXPECT_THAT(
      Load({"--config", one.c_str(), "--device", "host:1GiB"}).warnings,
      ElementsAre(AllOf(HasSubstr("chmod o-r"), Not(HasSubstr("0123456789")))));
  const std::string two = Write("two.yaml",
                                "tenants:\n  - {name: a, token_file: token}\n  "
                                "- {name: b, token_file: token}\n");
  EXPECT_THAT(LoadError({"--config", two.c_str(), "--device", "host:1GiB"}),
              HasSubstr("the same token"));
}

TEST_F(ConfigOnDisk, HttpIsForThisMachineUnlessThereIsAToken) {
  const std::string token = Write("token", "0123456789abcdef-secret\n");
  const std::string local =
      Write("local.yaml", "devices: [\"host:1GiB\"]\nhttp: 127.0.0.1:9469\n");
  EXPECT_EQ(Load({"--config", local.c_str()}).http->Text(), "127.0.0.1:9469");
  EXPECT_FALSE(
      Load({"--config", local.c_str(), "--http", "off"}).http.has_value());
  EXPECT_FALSE(Load({"--device", "host:1GiB"}).http.has_value());
  EXPECT_THAT(LoadError({"--config", local.c_str(), "--http", "0.0.0.0:1"}),
              HasSubstr("set http_token_file"));
  EXPECT_EQ(Load({"--config", local.c_str(), "--http", "0.0.0.0:1",
                  "--http-token-file", token.c_str()})
                .http_token,
            "0123456789abcdef-secret");
  EXPECT_THAT(LoadError({"--config", local.c_str(), "--http-token-file", "t"}),
              HasSubstr("in full"));
  Write("token", "short-secret");
  EXPECT_THAT(
      LoadError(
          {"--config", local.c_str(), "--http-token-file", token.c_str()}),
      AllOf(HasSubstr("16 to 256 bytes"), Not(HasSubstr("short-secret"))));
}

TEST_F(ConfigOnDisk, AFlagThatWinsOverTheFileSaysSo) {
  const std::string file = Write(
      "gmb.yaml", "devices: [\"host:1GiB\"]\nmax_sessions: 9\npause: false\n");
  const BrokerConfig config =
      Load({"--config", file.c_str(), "--device", "host:2GiB", "--max-sessions",
            "7", "--max-handles", "5"});
  EXPECT_EQ(config.max_sessions, 7U);
  EXPECT_THAT(
      config.warnings,
      ElementsAre(HasSubstr("--max-sessions on the command line wins over "
                            "max_sessions in the file"),
                  HasSubstr("--device on the command line wins over devices")));
  EXPECT_THAT(Load({"--config", file.c_str(), "--max-handles", "5"}).warnings,
              IsEmpty());
}

TEST_F(ConfigOnDisk, MoreHostMemoryThanTheMachineHasIsWarnedOf) {
  EXPECT_THAT(Load({"--device", "host:60TiB"}).warnings,
              ElementsAre(AllOf(HasSubstr("are 60.0 TiB"),
                                HasSubstr("this machine has"))));
}

TEST_F(ConfigOnDisk, AHomeDirectoryIsNotMadeUnderTheNameOfATilde) {
  const std::string file = Write("gmb.yaml", "socket_dir: ~/gmb\n");
  EXPECT_THAT(LoadError({"--config", file.c_str(), "--device", "host:1GiB"}),
              HasSubstr("gmb.yaml:1:13: socket_dir: write the path in full"));
  EXPECT_THAT(LoadError({"--state-dir", "~gmb/state", "--device", "host:1GiB"}),
              HasSubstr("--state-dir: write the path in full"));
}

// However the device is given: host devices get their names last.
TEST(Devices, AQuotaOfAHostDeviceIsOfOneThatIsThere) {
  const TempDirectory directory;
  const auto load = [&](const std::string& device) {
    std::ofstream(directory / "gmb.yaml")
        << "tenants:\n- {name: a, devices: {" << device << ": {limit: 25%}}}\n";
    Flags flags;
    flags.config_file = directory / "gmb.yaml";
    flags.devices = {"host:64MiB", "host:64MiB"};
    return LoadConfig(flags).status();
  };
  EXPECT_TRUE(load("host-1").ok()) << load("host-1");
  EXPECT_THAT(std::string(load("host-2").message()),
              HasSubstr("the broker has no device \"host-2\""));
}

}  // namespace
}  // namespace gmb::broker
