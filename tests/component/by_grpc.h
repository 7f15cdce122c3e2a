#ifndef GMB_TESTS_COMPONENT_BY_GRPC_H_
#define GMB_TESTS_COMPONENT_BY_GRPC_H_

#include <cstdlib>

namespace gmb::component {

// While it lives, clients that this process makes, and those of programs that it
// starts, speak gRPC where they would speak packets.
class ByGrpc {
 public:
  ByGrpc() { ::setenv("GMB_STREAM", "grpc", 1); }
  ByGrpc(const ByGrpc&) = delete;
  ByGrpc& operator=(const ByGrpc&) = delete;
  ~ByGrpc() { ::unsetenv("GMB_STREAM"); }
};

}  // namespace gmb::component

#endif  // GMB_TESTS_COMPONENT_BY_GRPC_H_
