#include "tests/component/broker_process.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "tests/component/await.h"

namespace gmb::component {
namespace {

std::vector<std::string> CommandLine(const std::string& directory,
                                     const BrokerOptions& options) {
  std::vector<std::string> words = options.wrapper;
  words.insert(words.end(),
               {GMBD_PROGRAM, "--socket-dir", directory + "/run", "--state-dir",
                directory + "/state", "--reuse-for", options.reuse_for,
                "--drain-deadline", options.drain_deadline});
  for (const std::string& device : options.devices)
    words.insert(words.end(), {"--device", device});
  if (!options.config.empty()) {
    const std::string file = directory + "/gmb.yaml";
    std::ofstream(file) << options.config;
    words.insert(words.end(), {"--config", file});
  }
  // Tests count on what is evicted, so each says whether there is a host pool.
  const bool told = std::any_of(options.flags.begin(), options.flags.end(),
                                [](const std::string& flag) {
                                  return flag.rfind("--host-pool", 0) == 0;
                                });
  if (!told) words.emplace_back("--host-pool=0");
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  return words;
}

}  // namespace

BrokerProcess::BrokerProcess(const std::string& directory,
                             const BrokerOptions& options)
    : socket_dir_(directory + "/run"),
      program_(directory, "gmbd", CommandLine(directory, options)) {}

std::unique_ptr<cli::AdminClient> BrokerProcess::AwaitServing() {
  std::unique_ptr<cli::AdminClient> serving;
  (void)Await([&] {
    if (!program_.IsRunning()) return true;
    if (!std::filesystem::exists(socket_dir_ + "/admin/handle.sock"))
      return false;
    auto admin = cli::AdminClient::Connect(socket_dir_);
    if (!admin.ok()) return false;
    const auto status = admin->GetStatus(v1::GetStatusRequest());
    if (!status.ok()) return false;
    serving = std::make_unique<cli::AdminClient>(*std::move(admin));
    return true;
  });
  return serving;
}

size_t BrokerProcess::OpenFds() const {
  std::error_code error;
  size_t fds = 0;
  for (std::filesystem::directory_iterator
           entry(absl::StrCat("/proc/", program_.pid(), "/fd"), error),
       end;
       !error && entry != end; entry.increment(error)) {
    ++fds;
  }
  return fds;
}

std::string BrokerProcess::FdNames() const {
  std::error_code error;
  std::string names;
  for (std::filesystem::directory_iterator
           entry(absl::StrCat("/proc/", program_.pid(), "/fd"), error),
       end;
       !error && entry != end; entry.increment(error)) {
    std::error_code gone;
    absl::StrAppend(&names, entry->path().filename().string(), " ",
                    std::filesystem::read_symlink(entry->path(), gone).string(),
                    "\n");
  }
  return names;
}

uint64_t BrokerProcess::ResidentBytes() const {
  std::ifstream statm(absl::StrCat("/proc/", program_.pid(), "/statm"));
  uint64_t all_pages = 0;
  uint64_t resident_pages = 0;
  statm >> all_pages >> resident_pages;
  return resident_pages * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace gmb::component
