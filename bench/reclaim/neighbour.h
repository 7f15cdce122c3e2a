#ifndef GMB_BENCH_RECLAIM_NEIGHBOUR_H_
#define GMB_BENCH_RECLAIM_NEIGHBOUR_H_

#include <cstdint>
#include <string>

namespace gmb::bench {

// main() of a process that launches kernels on a lease of its own, one after
// the other. `kernel` is one of NeighbourKernel. Told "begin" it forgets its
// launches; told "end" it answers with the mean of their times, in seconds.
inline constexpr char kNeighbourFlag[] = "--neighbour";
[[nodiscard]] int RunNeighbour(const std::string& kernel,
                               const std::string& socket_dir,
                               const std::string& uuid, uint64_t bytes);

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_NEIGHBOUR_H_
