// `gmb run`: the memory pools that allocations come from, and what a program
// reads about them.
#include <optional>

#include "client/preload/exported.h"
#include "client/preload/serve.h"

using gmb::preload::Allocations;
using gmb::preload::Answer;
using gmb::preload::AnswerCall;
using gmb::preload::Driver;
using gmb::preload::PoolName;
using gmb::preload::PoolUsage;
using gmb::preload::TheMemory;
using gmb::preload::ThePools;

namespace {

// Of an attribute that counts bytes; null for the others, which are settings.
const uint64_t* Find(const PoolUsage::Bytes& bytes, CUmemPool_attribute what) {
  switch (what) {
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
      return &bytes.used;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
      return &bytes.used_high;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
      return &bytes.reserved;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
      return &bytes.reserved_high;
    default:
      return nullptr;
  }
}

// So that the pool has no more of it than cuMemGetInfo leaves out. The driver
// answers the rest.
Answer GiveSurplusBack(const Driver& driver) {
  TheMemory(driver).sweeper().GiveSurplusBack();
  return std::nullopt;
}

}  // namespace

GMB_SERVED CUresult cuMemPoolCreate(CUmemoryPool* pool,
                                    const CUmemPoolProps* properties) {
  return AnswerCall([](const Driver&) -> Answer { return std::nullopt; },
                    [&](const Driver& driver) {
                      const CUresult result = GMB_REAL_CALL(
                          driver, cuMemPoolCreate, pool, properties);
                      if (result == CUDA_SUCCESS)
                        ThePools().Created(*pool, *properties);
                      return result;
                    });
}

// Forgotten before the call: the handle may be another pool's before it is over.
// The driver refuses to destroy a device's default pool, say.
GMB_SERVED CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return AnswerCall(
      [](const Driver&) -> Answer { return std::nullopt; },
      [&](const Driver& driver) {
        Allocations& allocations = TheMemory(driver).allocations();
        const std::optional<CUdevice> device = ThePools().Forget(pool);
        const PoolName name = allocations.ForgetPool(pool);
        const CUresult result = GMB_REAL_CALL(driver, cuMemPoolDestroy, pool);
        const bool destroyed = result == CUDA_SUCCESS;
        if (!destroyed && device.has_value())
          ThePools().NotDestroyed(pool, *device);
        allocations.PoolDestroyed(pool, name, destroyed);
        return result;
      });
}

// A program calls this to give memory back; here that is the memory that was
// kept for it.
GMB_SERVED CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
  return AnswerCall(
      [&](const Driver& driver) -> Answer {
        TheMemory(driver).sweeper().Trim(pool, bytes_to_keep);
        return std::nullopt;
      },
      [&](const Driver& driver) {
        return GMB_REAL_CALL(driver, cuMemPoolTrimTo, pool, bytes_to_keep);
      });
}

// The driver has a part of the pool, too, where the program fell back to it.
GMB_SERVED CUresult cuMemPoolGetAttribute(CUmemoryPool pool,
                                          CUmemPool_attribute what,
                                          void* value) {
  return AnswerCall(
      [](const Driver& driver) { return GiveSurplusBack(driver); },
      [&](const Driver& driver) {
        const CUresult result =
            GMB_REAL_CALL(driver, cuMemPoolGetAttribute, pool, what, value);
        if (result != CUDA_SUCCESS) return result;
        const PoolUsage::Bytes served =
            TheMemory(driver).allocations().BytesOf(pool);
        if (const uint64_t* const bytes = Find(served, what))
          *static_cast<cuuint64_t*>(value) += *bytes;
        return result;
      });
}

GMB_SERVED CUresult cuMemPoolSetAttribute(CUmemoryPool pool,
                                          CUmemPool_attribute what,
                                          void* value) {
  return AnswerCall(
      // By the threshold of before.
      [](const Driver& driver) { return GiveSurplusBack(driver); },
      [&](const Driver& driver) {
        const CUresult result =
            GMB_REAL_CALL(driver, cuMemPoolSetAttribute, pool, what, value);
        if (result == CUDA_SUCCESS) {
          TheMemory(driver).allocations().PoolAttributeSet(pool, what, value);
        }
        return result;
      });
}
