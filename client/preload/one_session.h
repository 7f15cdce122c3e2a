#ifndef GMB_CLIENT_PRELOAD_ONE_SESSION_H_
#define GMB_CLIENT_PRELOAD_ONE_SESSION_H_

#include "gmb/c_api.h"

// For the Python package, which looks them up in the process by these names.
extern "C" {

// The file of the client library that is used here, which is loaded by then;
// null without one.
GMB_EXPORT const char* gmb_run_library();

// A client of the program's session, which is opened for it if need be. Handles
// are those of that library. *joined is null, without an error, when there is no
// session to be had, or the options mean another broker or tenant.
GMB_EXPORT gmb_error* gmb_run_join(const gmb_client_options* options,
                                   gmb_client** joined);

}  // extern "C"

#endif  // GMB_CLIENT_PRELOAD_ONE_SESSION_H_
