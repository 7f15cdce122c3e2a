#ifndef GMB_CLIENT_CLI_VIEWS_APPLY_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_APPLY_VIEW_H_

#include <cstdint>
#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"

namespace gmb::cli {

// The changes of an apply: a line a tenant, + for one that is new, - for one
// that goes, with what is taken from its processes.
void PrintApplied(const v1::ApplyResponse& answer, const Terminal& terminal,
                  std::ostream& out);

// Bytes that are taken from processes, in all.
[[nodiscard]] uint64_t BytesTaken(const v1::ApplyResponse& answer);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_APPLY_VIEW_H_
