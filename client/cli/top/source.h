#ifndef GMB_CLIENT_CLI_TOP_SOURCE_H_
#define GMB_CLIENT_CLI_TOP_SOURCE_H_

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/admin_client.h"
#include "client/cli/top/look.h"

namespace gmb::cli::top {

// Asks once for all that a screen shows.
[[nodiscard]] absl::StatusOr<Look> Take(const AdminClient& client);

// NO_SUCH_DEVICE, as the broker answers other commands. Empty: any.
[[nodiscard]] absl::Status CheckIsThere(const Look& look,
                                        const std::string& device);

// Looks at a broker again and again, on a thread of its own, and listens to its
// events. When it does not answer, it tries on, and the last look stays.
// Thread-safe.
class Source {
 public:
  // `changed` is called, on threads of the source's, when there is something new.
  Source(std::string socket_dir, absl::Duration delay,
         std::function<void()> changed);
  // Waits for a call that is in progress: call Stop before.
  ~Source();

  [[nodiscard]] Sight sight() const;
  // Looks now, and not only when the time has come.
  void LookNow();
  // Asks the threads to end, and waits for them. False: one of them still waits
  // for a broker that does not answer.
  [[nodiscard]] bool Stop(absl::Duration patience);

  void set_delay(absl::Duration delay);

 private:
  void Run();
  // Looks until a call fails, or the end.
  absl::Status LookOn(const AdminClient& client);
  void Listen(EventReader* events);
  void Add(v1::Event event);
  void Show(Look look);
  // False: it is time to end.
  bool Pause(absl::Duration time);
  bool stopping() const;

  const std::string socket_dir_;
  const std::function<void()> changed_;

  mutable std::mutex mu_;
  std::condition_variable wake_;
  Sight sight_;
  MovedByPool moved_;
  absl::Duration delay_;
  bool now_ = false;
  bool stop_ = false;
  bool ended_ = false;
  EventReader* events_ = nullptr;  // to be cancelled at the end
  std::thread thread_;             // last: it uses the rest
};

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_SOURCE_H_
