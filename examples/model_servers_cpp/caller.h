#ifndef MODEL_SERVERS_CALLER_H_
#define MODEL_SERVERS_CALLER_H_

#include <httplib.h>

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace model_servers {

// The outcome of one request.
struct Reply {
  enum class Kind { kServed, kRefused, kFailed };
  Kind kind = Kind::kFailed;
  uint64_t sum = 0;
  bool met_evicted = false;
  absl::Duration took;
  std::string error;  // refused, and failed
};

struct ServerStats {
  uint64_t requests = 0;
  uint64_t refused = 0;
  uint64_t held_bytes = 0;
  uint64_t peak_held_bytes = 0;
};

// Calls a model server, over one connection. For one thread.
class Caller {
 public:
  explicit Caller(int port);

  [[nodiscard]] Reply Infer(uint64_t rows);
  [[nodiscard]] absl::StatusOr<ServerStats> Stats();

 private:
  httplib::Client client_;
};

}  // namespace model_servers

#endif  // MODEL_SERVERS_CALLER_H_
