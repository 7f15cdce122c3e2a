#ifndef GMB_BROKER_DAEMON_STATE_DIRECTORY_H_
#define GMB_BROKER_DAEMON_STATE_DIRECTORY_H_

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "broker/config/broker_config.h"
#include "broker/instance_lock.h"
#include "broker/store/quota_store.h"

namespace gmb::broker {

// The broker's directory on the disk, as long as it is this broker's: its lock,
// and the store in it.
class StateDirectory {
 public:
  // `config` must outlive it.
  explicit StateDirectory(const BrokerConfig* config) : config_(*config) {}
  StateDirectory(const StateDirectory&) = delete;
  StateDirectory& operator=(const StateDirectory&) = delete;

  // First. Makes the directory where there is none.
  absl::Status Lock();
  // `taken_over`: the last broker has left something, and so has its store.
  absl::Status OpenStore(bool taken_over);
  // Null before OpenStore.
  [[nodiscard]] QuotaStore* store() const { return store_.get(); }

  // Writes down who had the broker drain; the log has it where the disk does not
  // take it. Waits for the disk.
  void RecordDrain(const std::string& sender);

 private:
  const BrokerConfig& config_;
  std::optional<InstanceLock> lock_;
  std::unique_ptr<QuotaStore> store_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_STATE_DIRECTORY_H_
