#ifndef GMB_CLIENT_CLI_DEMO_ACTOR_H_
#define GMB_CLIENT_CLI_DEMO_ACTOR_H_

#include <string>

#include "client/cli/exit_code.h"

namespace gmb::cli {

// The client process that the demo starts for a tenant. It obeys commands on
// standard input and answers on standard output, a JSON object a line:
//
//   {"do": "lease", "name": "weights", "bytes": n, "wait": seconds,
//    "expect_zero": bool}
//       waiting?, then refused, or granted and filled
//   {"do": "verify"}
//       verified
//   {"do": "release", "name": "weights"}
//       released
//   {"do": "idle"}
//       idle: the gate is on, and no scope is in
//   {"do": "wake", "wait": seconds}
//       woken, with what was found within a scope
//   {"do": "quit"}
//       the process ends, its leases released
//
// Every answer has "event"; "failed" has "code" and "message". It also says
// "connected" at the start, and "budget" when the quota was changed.
// Returns when told to quit or when the other end is gone.
ExitCode PlayActor(const std::string& socket_dir);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_DEMO_ACTOR_H_
