#ifndef GMB_CLIENT_CLI_VIEWS_OUTSIDE_VIEW_H_
#define GMB_CLIENT_CLI_VIEWS_OUTSIDE_VIEW_H_

#include <ostream>

#include "client/cli/text/terminal.h"
#include "gmb/v1/admin.pb.h"
#include "google/protobuf/repeated_ptr_field.h"

namespace gmb::cli {

// Processes that use a GPU without a session, a line each; nothing without any.
void PrintOutside(
    const google::protobuf::RepeatedPtrField<v1::OutsideProcess>& list,
    const Terminal& terminal, std::ostream& out);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_OUTSIDE_VIEW_H_
