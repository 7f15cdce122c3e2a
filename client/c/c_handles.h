#ifndef GMB_CLIENT_C_C_HANDLES_H_
#define GMB_CLIENT_C_C_HANDLES_H_

#include <memory>

#include "gmb/client.h"
#include "gmb/lease.h"

// The structs behind the names of c_api.h.
struct gmb_client {
  std::unique_ptr<gmb::Client> client;
};
struct gmb_lease {
  gmb::Lease lease;
};

#endif  // GMB_CLIENT_C_C_HANDLES_H_
