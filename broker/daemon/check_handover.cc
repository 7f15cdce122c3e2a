// `gmbd --check-handover`: whether this program could go on where another one
// would stop.
#include "broker/daemon/check_handover.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "absl/time/clock.h"
#include "base/status_macros.h"
#include "broker/daemon/check_directories.h"
#include "broker/daemon/store_setup.h"
#include "broker/instance_lock.h"
#include "broker/keeping/journal_look.h"
#include "device/devices.h"

namespace gmb::broker {
namespace {

bool IsFine(const char* subject, const absl::Status& status) {
  if (status.ok()) return true;
  std::printf("problem: %s: %s\n", subject,
              std::string(status.message()).c_str());
  return false;
}

// Its broker may be writing it, so that the copy that is read is half of a
// change: rarely, and not again.
absl::StatusOr<Declared> ReadDatabase(const std::string& state_dir) {
  constexpr int kTries = 5;
  absl::StatusOr<Declared> stored = ReadStored(state_dir);
  for (int i = 1; i < kTries && absl::IsDataLoss(stored.status()); ++i) {
    absl::SleepFor(absl::Milliseconds(100));
    stored = ReadStored(state_dir);
  }
  return stored;
}

absl::Status CheckDatabase(const std::string& state_dir) {
  GMB_RETURN_IF_ERROR(CheckStoreIsThere(state_dir));
  GMB_ASSIGN_OR_RETURN(const Declared stored, ReadDatabase(state_dir));
  std::printf("database: %zu tenants\n", stored.tenants.size());
  return absl::OkStatus();
}

// Else they are not that broker's: relative paths, and another working
// directory.
absl::Status CheckDirectories(const BrokerConfig& config) {
  for (const std::string& path : {config.socket_dir, config.state_dir}) {
    const absl::Status held = InstanceLock::Probe(path);
    if (absl::IsAlreadyExists(held)) continue;
    if (!held.ok()) return held;
    return absl::FailedPreconditionError(
        absl::StrCat("no broker runs in ", path,
                     ": is that the directory of the one that is to be "
                     "replaced?"));
  }
  return absl::OkStatus();
}

absl::Status CheckJournal(const std::string& keeper) {
  if (keeper.empty()) {
    return absl::FailedPreconditionError(
        "there is none without a keeper: sessions and leases end with the "
        "broker");
  }
  GMB_ASSIGN_OR_RETURN(const base::UniqueFd journal, FetchJournal(keeper));
  GMB_ASSIGN_OR_RETURN(const FoundRecords found, LookAtJournal(journal.get()));
  if (!found.set_aside.empty()) {
    return absl::DataLossError(absl::StrCat(
        found.set_aside.size(),
        " records could not be taken over, the first: ", found.set_aside[0]));
  }
  std::printf("journal: %zu sessions, %zu leases\n",
              found.records.sessions.size(), found.records.leases.size());
  return absl::OkStatus();
}

absl::Status CheckDriver(const BrokerConfig& config) {
  const bool needs_one =
      std::any_of(config.devices.begin(), config.devices.end(),
                  [](const DeviceConfig& device) {
                    return device.kind != device::DeviceKind::kHost;
                  });
  if (!needs_one) return absl::OkStatus();
  const device::CudaProbe probe = device::ProbeCuda();
  if (!probe.problem.empty())
    return absl::FailedPreconditionError(probe.problem);
  return absl::OkStatus();
}

}  // namespace

bool CheckHandover(const BrokerConfig& config) {
  for (const std::string& warning : config.warnings)
    std::printf("warning: %s\n", warning.c_str());
  bool ok = IsFine("driver", CheckDriver(config));
  ok &= IsFine("directories", CheckDirectories(config));
  ok &= IsFine("database", CheckDatabase(config.state_dir));
  ok &= IsFine("journal", CheckJournal(config.keeper_socket));
  if (ok) std::puts("ok: this program could take over");
  return ok;
}

}  // namespace gmb::broker
