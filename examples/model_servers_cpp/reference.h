#ifndef MODEL_SERVERS_REFERENCE_H_
#define MODEL_SERVERS_REFERENCE_H_

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "model.h"

namespace model_servers {

// The sums that a server has to answer, by the rows of the batch: computed on
// this machine's processor, in ordinary memory.
[[nodiscard]] absl::StatusOr<std::map<uint64_t, uint64_t>> ExpectedSums(
    const Model& model, const std::vector<uint64_t>& batches);

}  // namespace model_servers

#endif  // MODEL_SERVERS_REFERENCE_H_
