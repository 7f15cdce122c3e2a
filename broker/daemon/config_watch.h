#ifndef GMB_BROKER_DAEMON_CONFIG_WATCH_H_
#define GMB_BROKER_DAEMON_CONFIG_WATCH_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "broker/config/broker_config.h"
#include "broker/daemon/file_watch.h"
#include "broker/server/admin_service.h"

namespace gmb::broker {

// Has the configuration read again when its file, or a token file that it names,
// was written. Without it the broker serves all the same, and the log says so.
class ConfigWatch {
 public:
  // `reload` is called on any thread, and has it read soon.
  ConfigWatch(std::string config_file, std::function<void()> reload)
      : config_file_(std::move(config_file)), reload_(std::move(reload)) {}

  // `admin` has the operators' thread.
  void Start(const BrokerConfig& config, AdminService* admin);
  // These are the files from now on. On the operators' thread; before the start
  // has come there it does nothing.
  void Watch(const BrokerConfig& config);
  void Stop() { watch_.reset(); }

 private:
  const std::string config_file_;
  const std::function<void()> reload_;
  std::shared_ptr<FileWatch> watch_;  // the operators' thread's; null: none
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_CONFIG_WATCH_H_
