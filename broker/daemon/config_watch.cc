// The files that a reload reads are watched.
#include "broker/daemon/config_watch.h"

#include <set>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

std::set<std::string> WatchedFiles(const std::string& config_file,
                                   const BrokerConfig& config) {
  std::set<std::string> files = {config_file};
  for (const TenantConfig& tenant : config.tenants) {
    if (!tenant.token_file.empty()) files.insert(tenant.token_file);
  }
  return files;
}

void WarnOfWatch(const absl::Status& watched) {
  if (watched.ok()) return;
  LogEvent(LogLevel::kWarning, "file_not_watched",
           {{"message",
             absl::StrCat(watched.message(), ": SIGHUP has it read again")}});
}

}  // namespace

void ConfigWatch::Start(const BrokerConfig& config, AdminService* admin) {
  absl::StatusOr<std::unique_ptr<FileWatch>> watch =
      FileWatch::Start(WatchedFiles(config_file_, config), reload_);
  WarnOfWatch(watch.status());
  if (!watch.ok()) return;
  admin->Post([this, w = std::shared_ptr(*std::move(watch))] {
    watch_ = w;
    reload_();  // what was written since the start read it
  });
}

void ConfigWatch::Watch(const BrokerConfig& config) {
  if (watch_ == nullptr) return;
  const absl::StatusOr<bool> any_new =
      watch_->Watch(WatchedFiles(config_file_, config));
  WarnOfWatch(any_new.status());
  if (any_new.ok() && *any_new) reload_();  // as at the start
}

}  // namespace gmb::broker
