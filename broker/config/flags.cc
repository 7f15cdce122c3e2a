// The broker's start: reads the command line.
#include "broker/config/flags.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/commit.h"
#include "broker/config/settings.h"

namespace gmb::broker {
namespace {

constexpr int kUsage = 2;

constexpr char kAbout[] =
    R"(gmbd, the GPU memory broker: owns the memory of devices and leases it to processes under quotas.)";

constexpr char kExamples[] = R"(
Examples:
  gmbd --device host:4GiB --socket-dir /tmp/gmb --state-dir /tmp/gmb-state
      try it without a GPU; then make a tenant and be it, in another shell:
      gmb --socket-dir /tmp/gmb tenant set a --limit 50%
      gmb --socket-dir /tmp/gmb hold --tenant a --bytes 64MiB
  gmbd --device cuda:0 --pool 90% --config /etc/gmb/gmb.yaml
      own 90% of the first GPU, for the tenants in the file
  gmbd --config /etc/gmb/gmb.yaml --check
      find mistakes in the file and look at the devices, then stop

Tenants are in the file, or set live: gmb tenant set a --guarantee 25% --limit 60GiB
Sizes: 512MiB, 1.5GiB, 2GB; shares: 25%, max. A flag wins over the file.
SIGTERM drains, a second one stops at once. SIGHUP reads the file and the token
files again: tenants change live, and the log says what needs a restart. Beside
a keeper, gmb upgrade puts another gmbd in its place. Exit codes: 0 stopped in order,
1 could not start, 2 mistake in the flags or the file, 3 stopped at once,
4 drained by gmb drain, and not to be started again.)";

// Both ways, as what the file says can be either.
void AddSwitch(const Setting& setting, CLI::App* app, Flags* flags) {
  const std::string name = setting.name;
  const std::string on = setting.Flag();
  const std::string both =
      setting.flag_only ? on : absl::StrCat(on, ",!--no-", on.substr(2));
  app->add_flag_function(
      both,
      [flags, name](int64_t times) {
        flags->settings[name] = times > 0 ? "true" : "false";
      },
      absl::StrCat(setting.help, " [", setting.default_text, "]"));
}

// "gmbd 0.1.0 (1a2b3c4d5e6f)".
std::string VersionText() {
  const std::string commit = base::Commit();
  return absl::StrCat("gmbd ", GMB_VERSION,
                      commit.empty() ? "" : absl::StrCat(" (", commit, ")"));
}

}  // namespace

Flags ParseFlags(int argc, const char* const* argv) {
  Flags flags;
  CLI::App app(kAbout, "gmbd");
  app.footer(kExamples);
  app.set_version_flag("--version", VersionText());
  app.add_option("--config", flags.config_file, "configuration file (YAML)")
      ->type_name("FILE");
  app.add_option("--device", flags.devices,
                 "device to own, may be repeated: host:SIZE, cuda:N, or a "
                 "GPU's UUID; with ipc: before a GPU the "
                 "compatibility kind. Replaces the file's devices")
      ->type_name("DEVICE")
      ->expected(1)
      ->take_all();
  for (const Setting& setting : Settings()) {
    const std::string name = setting.name;
    if (setting.placeholder == nullptr) {
      AddSwitch(setting, &app, &flags);
      continue;
    }
    app.add_option_function<std::string>(
           setting.Flag(),
           [&flags, name](const std::string& value) {
             flags.settings[name] = value;
           },
           absl::StrCat(setting.help, " [", setting.default_text, "]"))
        ->type_name(setting.placeholder);
  }
  app.add_flag("--check", flags.check,
               "check the configuration, probe the devices, say what was "
               "found, and stop");
  app.add_flag("--check-handover", flags.check_handover,
               "beside a broker that runs with the same flags: check that this "
               "program reads its file, its database and its journal, and "
               "could take its place, and stop");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    std::ostringstream out;
    std::ostringstream err;
    flags.exit_code = app.exit(e, out, err) == 0 ? 0 : kUsage;
    flags.text = out.str() + err.str();
  }
  return flags;
}

}  // namespace gmb::broker
