#ifndef GMB_CLIENT_PYTHON_NATIVE_GMB_TORCH_H_
#define GMB_CLIENT_PYTHON_NATIVE_GMB_TORCH_H_

/* libgmb_torch.so: PyTorch's CUDAPluggableAllocator over leases, one lease a
 * segment. Links neither libgmb nor torch nor CUDA nor Python: gmb/torch of the
 * Python package, which comes in one wheel with this library, says by which
 * libgmb it works, and torch calls gmb_torch_alloc and gmb_torch_free by address.
 * Not a public interface. Conventions are those of gmb/c_api.h. */

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "gmb/c_api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Before all else: `library` is the libgmb whose handles are meant, as dlopen
 * gave it. 0: it lacks a function. */
GMB_EXPORT int32_t gmb_torch_use_library(void* library);

/* From now on segments are leases of `client`, which stays open until
 * gmb_torch_close. devices[i] is the UUID of torch's device i, NULL when the
 * broker does not have it. A lease may wait for wait_ms. */
GMB_EXPORT void gmb_torch_open(gmb_client* client, const char* const* devices,
                               int32_t count, int64_t wait_ms);
/* No new segments. Those that are there stay and can be freed. */
GMB_EXPORT void gmb_torch_close(void);

/* Torch calls these. Null: the broker refuses; see gmb_torch_take_failure. */
GMB_EXPORT void* gmb_torch_alloc(ssize_t bytes, int device, void* stream);
GMB_EXPORT void gmb_torch_free(void* address, ssize_t bytes, int device,
                               void* stream);

/* Makes a sealed lease, a shared one, a segment of the device. It is given back
 * by gmb_torch_free, as all are. */
GMB_EXPORT void gmb_torch_adopt(gmb_lease* lease, int32_t device);

/* The group of the calling thread's next segments: a number that names them
 * together, and their contents (GMB_CONTENTS_...). 0 and PRESERVE at first. */
GMB_EXPORT void gmb_torch_set_group(uint64_t group, int32_t contents);
/* Seals all leases of the group. The first that fails ends it. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_torch_seal(uint64_t group);

typedef struct gmb_torch_segment {
  uint64_t address;
  uint64_t bytes;
  uint64_t group;
  int32_t device;
  int32_t sealed;
} gmb_torch_segment;

/* The segment that holds the address: 1, or 0 when it is in none. */
GMB_EXPORT int32_t gmb_torch_find(const void* address,
                                  gmb_torch_segment* segment);

typedef struct gmb_torch_totals {
  uint64_t segments;
  uint64_t bytes;
  uint64_t waiting; /* threads inside gmb_acquire now */
  uint64_t changes; /* segments made and freed ever: has anything changed? */
  uint64_t trims; /* asked for ever, passed on or not: the broker has forgotten
                     what it was told that could be trimmed */
} gmb_torch_totals;

GMB_EXPORT void gmb_torch_get_totals(gmb_torch_totals* totals);

typedef struct gmb_torch_failure {
  uint64_t bytes; /* that were asked for; 0: the thread has no failure */
  uint64_t deficit_bytes;
  int64_t retry_after_ms;
  int32_t code;
  int32_t reason;
  char message[1024];
} gmb_torch_failure;

/* Why the calling thread's last gmb_torch_alloc failed, once. */
GMB_EXPORT void gmb_torch_take_failure(gmb_torch_failure* failure);

/* While a capture is under way no lease is released, which would synchronise
 * the device and destroy it: what torch frees meanwhile goes at the end. */
GMB_EXPORT void gmb_torch_begin_capture(void);
GMB_EXPORT void gmb_torch_end_capture(void);

/* Called as gmb_client_options.on_trim. Passes the request on to `callback`
 * unless a lease is waited for (its thread holds torch's lock, which releasing
 * needs) or a capture is under way. NULL: to nobody; when that returns it is
 * not running, unless this is called inside it. */
GMB_EXPORT void gmb_torch_on_trim(const char* device, uint64_t bytes,
                                  int64_t within_ms, void* user);
GMB_EXPORT void gmb_torch_set_trim(gmb_trim_callback callback);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GMB_CLIENT_PYTHON_NATIVE_GMB_TORCH_H_ */
