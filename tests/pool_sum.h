#ifndef GMB_TESTS_POOL_SUM_H_
#define GMB_TESTS_POOL_SUM_H_

#include <cstdint>

#include "gmb/v1/admin.pb.h"

namespace gmb {

// All that a pool's bytes are; together its capacity, in every answer.
inline uint64_t SumOfParts(const v1::PoolStatus& pool) {
  return pool.granted_bytes() + pool.returned_bytes() + pool.ready_bytes() +
         pool.float_bytes() + pool.scrubbing_bytes() + pool.unreturned_bytes() +
         pool.missing_bytes();
}

}  // namespace gmb

#endif  // GMB_TESTS_POOL_SUM_H_
