#ifndef GMB_CLIENT_C_C_HANDLES_H_
#define GMB_CLIENT_C_C_HANDLES_H_

#include <memory>

#include "gmb/client.h"

// The struct behind gmb_client.
struct gmb_client {
  std::unique_ptr<gmb::Client> client;
};

#endif  // GMB_CLIENT_C_C_HANDLES_H_
