#ifndef GMB_CLIENT_SESSION_JOINED_H_
#define GMB_CLIENT_SESSION_JOINED_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "base/mutex.h"
#include "client/session/session.h"
#include "gmb/options.h"

namespace gmb::internal {

// The things that a client brings into a session that another one has opened,
// under `gmb run`, and takes along when it goes: a trim handler, the bytes that
// this could give back, and whether its leases may be lent.
//
// The session's gate is automatic: on and off are not the client's to say. Its
// "off" is a scope that stays in. Thread-safe; not destroyed in a forked child.
class Joined {
 public:
  // `on_trim` may be null.
  Joined(std::shared_ptr<Session> session, const TrimHandler& on_trim);
  Joined(const Joined&) = delete;
  Joined& operator=(const Joined&) = delete;
  ~Joined();

  // Fails when the session is over.
  [[nodiscard]] absl::Status TurnGateOn();
  // Waits and fails as a scope does.
  [[nodiscard]] absl::Status TurnGateOff(absl::Duration wait);
  [[nodiscard]] absl::Status SetTrimmable(const std::string& device,
                                          uint64_t bytes);

 private:
  void LetGo();

  const std::shared_ptr<Session> session_;
  base::Mutex mu_;  // held while the gate is turned on or off
  bool off_ ABSL_GUARDED_BY(mu_) = false;
};

// Whether two socket directories are one, under whatever names; `asked` is as
// ClientOptions has it.
[[nodiscard]] bool IsSocketDirOf(const Session& session,
                                 const std::string& asked);

}  // namespace gmb::internal

#endif  // GMB_CLIENT_SESSION_JOINED_H_
