#ifndef GMB_BENCH_BROKER_ECHO_STREAM_H_
#define GMB_BENCH_BROKER_ECHO_STREAM_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace gmb::bench {

struct Echoes {
  double a_second = 0;
  double cpu_us = 0;  // of each, client and server, as pair_bench counts it
};

// Round trips of so many bidirectional gRPC streams over a Unix socket at
// `path`, whose server answers every empty message with an empty one: what a
// broker that does nothing would reach. The server is a process of its own, as
// a broker is.
//
// The program that calls it has to call ServeEchoes when it is started with
// kServeFlag and a path.
[[nodiscard]] absl::StatusOr<Echoes> MeasureEchoes(const std::string& path,
                                                   uint32_t streams,
                                                   double seconds);

inline constexpr char kServeFlag[] = "--serve-echoes";
// Serves at `path` until the process is killed.
[[noreturn]] void ServeEchoes(const std::string& path);

}  // namespace gmb::bench

#endif  // GMB_BENCH_BROKER_ECHO_STREAM_H_
