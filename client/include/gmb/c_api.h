#ifndef GMB_C_API_H_
#define GMB_C_API_H_

/* The C interface of libgmb: leases of device memory from a gmb broker.
 * The stable binary surface of the library; the C++ headers beside this one
 * are stable as source only. docs/client.md says what things mean.
 *
 * Conventions.
 *
 *  1. Functions and types begin with gmb_, constants with GMB_.
 *  2. Handles (gmb_client, gmb_lease, gmb_heap, gmb_graph_pool, gmb_canceller,
 *     gmb_error) are opaque.
 *     Each is given back to the one function that ends it; that function
 *     accepts NULL and does nothing then. Other functions need valid handles.
 *  3. A function that can fail returns gmb_error*: NULL is success, anything
 *     else is the caller's, to end with gmb_error_free.
 *  4. Results go through pointers, which come last. On failure handles are set
 *     to NULL and counts to 0.
 *  5. Option structs begin with struct_size. Call the struct's _init with
 *     sizeof, then set what differs: a program built with this header works
 *     with newer libraries, and with older ones while it leaves fields zero
 *     that they do not know. NULL options are the defaults. A field that is
 *     zero has its default.
 *  6. Structs that are copied out go with the size of one element, for the same
 *     reason: the library fills what both sides know and zeroes the rest.
 *  7. Bytes are uint64_t and named _bytes; times are int64_t milliseconds and
 *     named _ms. Strings are UTF-8 and end with a zero. The library keeps no
 *     pointer that it was given, but callbacks and their user pointers.
 *  8. Strings that the library returns live as long as the handle asked.
 *  9. A gmb_client, gmb_heap, gmb_graph_pool and gmb_canceller may be used by
 *     any number of threads at once. A gmb_lease may be read by several, and is
 *     changed and released by one while no other uses it. No thread may use a
 *     handle that is being ended.
 * 10. Callbacks about the budget and draining run on one thread of the client,
 *     one at a time, never after gmb_client_close has returned, and may call
 *     this library; on_trim runs on another, beside them. A C++ exception that
 *     leaves a callback is dropped; do not longjmp out of one.
 * 11. Nothing is thrown, logged or printed, and the process is never ended.
 * 12. In a child of fork() every call on the parent's handles fails with
 *     GMB_CODE_FAILED_PRECONDITION, and ending them does no harm.
 * 13. The version of this interface is GMB_ABI_MAJOR.GMB_ABI_MINOR. Another
 *     major number is another soname; a minor one only adds.
 */

#include <stddef.h>
#include <stdint.h>

#include "gmb/version.h"

#define GMB_ABI_MAJOR 0
#define GMB_ABI_MINOR 1

#define GMB_EXPORT __attribute__((visibility("default")))
#define GMB_NODISCARD __attribute__((warn_unused_result))

#ifdef __cplusplus
extern "C" {
#endif

/* Of the library that is loaded; the macros say what was compiled against. */
GMB_EXPORT void gmb_abi_version(uint32_t* major, uint32_t* minor);
/* "0.1.0" */
GMB_EXPORT const char* gmb_version(void);

/* --- Errors. */

typedef struct gmb_error gmb_error;

/* gRPC's status codes. */
enum {
  GMB_CODE_OK = 0,
  GMB_CODE_CANCELLED = 1,
  GMB_CODE_UNKNOWN = 2,
  GMB_CODE_INVALID_ARGUMENT = 3,
  GMB_CODE_DEADLINE_EXCEEDED = 4,
  GMB_CODE_NOT_FOUND = 5,
  GMB_CODE_ALREADY_EXISTS = 6,
  GMB_CODE_PERMISSION_DENIED = 7,
  GMB_CODE_RESOURCE_EXHAUSTED = 8,
  GMB_CODE_FAILED_PRECONDITION = 9,
  GMB_CODE_ABORTED = 10,
  GMB_CODE_OUT_OF_RANGE = 11,
  GMB_CODE_UNIMPLEMENTED = 12,
  GMB_CODE_INTERNAL = 13,
  GMB_CODE_UNAVAILABLE = 14,
  GMB_CODE_DATA_LOSS = 15,
  GMB_CODE_UNAUTHENTICATED = 16
};

/* Why the broker refused. A newer broker may send others. */
enum {
  GMB_REASON_NONE =
      0, /* not the broker's decision: the library or the transport */
  GMB_REASON_BAD_REQUEST = 1,
  GMB_REASON_NO_SESSION = 2,
  GMB_REASON_NOT_OPERATOR = 3,
  GMB_REASON_NO_SUCH_LEASE = 4,
  GMB_REASON_NO_SUCH_TENANT = 5,
  GMB_REASON_NO_SUCH_DEVICE = 6,
  GMB_REASON_TENANT_LIMIT = 7,
  GMB_REASON_TOO_MANY_HANDLES = 8,
  GMB_REASON_POOL_EXHAUSTED = 9,
  GMB_REASON_OVERCOMMITTED = 10,
  GMB_REASON_BAD_STATE = 11,
  GMB_REASON_CANCELLED_BY_CLIENT = 12,
  GMB_REASON_DRAINING = 13,
  GMB_REASON_DEVICE_ERROR = 14,
  GMB_REASON_DEVICE_LOST = 15,
  GMB_REASON_TOO_MANY_SESSIONS = 16,
  GMB_REASON_TOO_MANY_REQUESTS = 17,
  GMB_REASON_PAUSING = 18,
  GMB_REASON_CONTENTS_LOST = 19,
  GMB_REASON_NAME_TAKEN = 20
};

/* These accept NULL: GMB_CODE_OK, GMB_REASON_NONE, "" and 0. */
GMB_EXPORT int32_t gmb_error_code(const gmb_error* error);
GMB_EXPORT int32_t gmb_error_reason(const gmb_error* error);
/* The fault and what to do; never NULL. */
GMB_EXPORT const char* gmb_error_message(const gmb_error* error);
/* The offending field with GMB_REASON_BAD_REQUEST, otherwise "". */
GMB_EXPORT const char* gmb_error_field(const gmb_error* error);
/* How many bytes were too many, where that is the reason. */
GMB_EXPORT uint64_t gmb_error_deficit_bytes(const gmb_error* error);
/* When trying again may help; 0 if the broker did not say. */
GMB_EXPORT int64_t gmb_error_retry_after_ms(const gmb_error* error);
GMB_EXPORT void gmb_error_free(gmb_error* error);

/* --- Sessions. */

typedef struct gmb_client gmb_client;

/* The tenant's quota on one device pool, and its use. */
typedef struct gmb_quota {
  char device[64]; /* UUID */
  uint64_t guarantee_bytes;
  uint64_t limit_bytes;
  uint64_t leased_bytes; /* by all of the tenant's processes together */
  uint64_t unreturned_bytes;
  uint64_t pool_bytes;
  uint64_t obtainable_bytes; /* what an acquire without waiting could get now */
  uint64_t over_limit_bytes;
  double weight;
  uint64_t evicted_bytes; /* of the leased ones, not on the device now */
} gmb_quota;

enum {
  GMB_DEVICE_UNKNOWN = 0, /* of a broker newer than this library */
  GMB_DEVICE_VMM = 1, /* GPU memory, mapped with virtual memory management */
  GMB_DEVICE_IPC = 2, /* GPU memory, opened with legacy CUDA IPC */
  GMB_DEVICE_HOST = 3 /* shared host memory */
};

typedef struct gmb_device {
  char uuid[64];
  char name[64];
  uint64_t granularity_bytes; /* leases are rounded up to a multiple of it */
  uint64_t total_bytes;
  int32_t kind;
} gmb_device;

/* An operator changed the quota, or a pending change took effect. */
typedef void (*gmb_budget_callback)(const gmb_quota* quota, void* user);
/* The broker is stopping, or this tenant is being deleted: release what you
 * hold within remaining_ms, and close the client. */
typedef void (*gmb_draining_callback)(int64_t remaining_ms, void* user);

/* Others need memory: release what is cached and not needed, `bytes` of the
 * device if that much is there, before returning. The broker waits for at most
 * within_ms, and then looks elsewhere; 0: it has not waited any more. See
 * gmb_set_trimmable. */
typedef void (*gmb_trim_callback)(const char* device, uint64_t bytes,
                                  int64_t within_ms, void* user);

typedef struct gmb_client_options {
  size_t struct_size;
  const char* socket_dir;   /* NULL: GMB_SOCKET_DIR, then /run/gmb */
  const char* program;      /* shown to operators; NULL: this program's name */
  const void* tenant_token; /* where the broker tells tenants by token */
  size_t tenant_token_bytes;
  int64_t connect_timeout_ms; /* for all of connecting; 0: 5 s */
  int64_t answer_timeout_ms;  /* how long the broker may stay silent; 0: 30 s */
  gmb_budget_callback on_budget_changed;
  gmb_draining_callback on_draining;
  void* user; /* for all callbacks */
  gmb_trim_callback on_trim;
  int32_t automatic_gate; /* 1: of `gmb run` alone; leave it 0 */
} gmb_client_options;

GMB_EXPORT void gmb_client_options_init(gmb_client_options* options,
                                        size_t struct_size);

/* Blocks until the broker has answered. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_client_connect(
    const gmb_client_options* options, gmb_client** client);
/* Leases that are still held stay valid; the session ends with the last. */
GMB_EXPORT void gmb_client_close(gmb_client* client);

/* NULL while the session lives; otherwise what every call returns. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_client_status(const gmb_client* client);
GMB_EXPORT const char* gmb_client_tenant(const gmb_client* client);
GMB_EXPORT uint64_t gmb_client_session_id(const gmb_client* client);
/* Warnings of the greeting, for people to read. NULL behind the last. */
GMB_EXPORT const char* gmb_client_warning(const gmb_client* client,
                                          size_t index);

/* Copies out at most `capacity` devices; *count is how many there are. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_client_devices(const gmb_client* client,
                                                       gmb_device* devices,
                                                       size_t element_size,
                                                       size_t capacity,
                                                       size_t* count);
/* Asks the broker; one quota a device pool. Otherwise as gmb_client_devices. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_client_quota(gmb_client* client,
                                                     gmb_quota* quotas,
                                                     size_t element_size,
                                                     size_t capacity,
                                                     size_t* count);

#define GMB_WAIT_LONGEST INT64_C(-1)

/* --- The gate: outside of scopes the broker may take the session's memory for
 * a while. See docs/client.md. */

/* From now on leases are used inside scopes only, on all threads. Without a
 * scope for park_after_ms (0: 50 ms) the memory may be taken. Sessions of one
 * tenant that name the same group lose their memory and get it back together,
 * or not at all; NULL or "": none. After an error the gate is as it was. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_gate_on(gmb_client* client,
                                                int64_t park_after_ms,
                                                const char* group);
/* As if a scope were in that never ends: waits and fails as gmb_enter does, and
 * with GMB_REASON_OVERCOMMITTED when the broker could then not keep what it has
 * guaranteed to others. After an error the gate is on. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_gate_off(gmb_client* client,
                                                 int64_t wait_ms);
/* Enters a scope of the calling thread: nanoseconds. Scopes nest. While the
 * memory is away it blocks for at most wait_ms until it is back; then
 * GMB_CODE_DEADLINE_EXCEEDED. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_enter(gmb_client* client,
                                              int64_t wait_ms);
/* The same for a scope in which a CUDA stream is captured: begins when the
 * library is not synchronising the device, which would destroy the capture. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_enter_capture(gmb_client* client,
                                                      int64_t wait_ms);
/* Leaves the scope that the calling thread entered last.
 * GMB_CODE_FAILED_PRECONDITION when it is in none. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_leave(gmb_client* client);

/* Says how many bytes on_trim could release at once, on the device (UUID; NULL:
 * the broker's only one): the broker asks sessions that have some. Does not wait
 * for the broker. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_set_trimmable(gmb_client* client,
                                                      const char* device,
                                                      uint64_t bytes);

/* --- Withdrawing requests. */

/* May be given to several requests. It may be freed while they wait. */
typedef struct gmb_canceller gmb_canceller;

GMB_EXPORT GMB_NODISCARD gmb_error* gmb_canceller_create(
    gmb_canceller** canceller);
/* Withdraws every request that has it, now and in the future. */
GMB_EXPORT void gmb_canceller_cancel(gmb_canceller* canceller);
GMB_EXPORT void gmb_canceller_free(gmb_canceller* canceller);

/* --- Leases. */

typedef struct gmb_lease gmb_lease;

/* How contents are treated when the bytes are needed elsewhere. */
enum {
  GMB_CONTENTS_PRESERVE = 0, /* kept, in host memory if need be */
  GMB_CONTENTS_DISCARD = 1,  /* may be lost */
  GMB_CONTENTS_RESIDENT = 2  /* never moved (NCCL, RDMA, peers) */
};

/* The request waits behind `ahead` others. On the thread that acquires. */
typedef void (*gmb_waiting_callback)(uint64_t ahead, void* user);

typedef struct gmb_acquire_options {
  size_t struct_size;
  const char* device; /* UUID; NULL: the broker's only device */
  int64_t wait_ms;    /* 0: not at all; GMB_WAIT_LONGEST: as long as the broker
                         allows */
  int32_t contents;   /* GMB_CONTENTS_... */
  int32_t keep; /* with share_as, not 0: it stays when nobody is attached any
                   more, until it is dropped */
  const char* const*
      access_from; /* UUIDs of further devices that may access it */
  size_t access_from_count;
  const gmb_canceller* canceller;
  gmb_waiting_callback on_waiting;
  void* user;
  /* Not NULL: once it is sealed, other sessions of the tenant may attach to it
     by this name. 1 to 128 printable characters; GMB_REASON_NAME_TAKEN when
     there is one, or being made. */
  const char* share_as;
} gmb_acquire_options;

GMB_EXPORT void gmb_acquire_options_init(gmb_acquire_options* options,
                                         size_t struct_size);

/* Leases `bytes`, rounded up, as one contiguous range. All or nothing. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_acquire(
    gmb_client* client, uint64_t bytes, const gmb_acquire_options* options,
    gmb_lease** lease);

typedef struct gmb_attach_options {
  size_t struct_size;
  int64_t wait_ms; /* until it is sealed, and back on the device; as above */
  const char* const*
      access_from; /* UUIDs of further devices that may read it */
  size_t access_from_count;
  const gmb_canceller* canceller;
  gmb_waiting_callback on_waiting;
  void* user;
} gmb_attach_options;

GMB_EXPORT void gmb_attach_options_init(gmb_attach_options* options,
                                        size_t struct_size);

/* Maps a shared lease of this tenant (docs/shared.md), to be read: a write to
 * it through a pointer faults, but on an ipc device. Released as others are,
 * which leaves it to those who are attached. GMB_REASON_NO_SUCH_LEASE: nobody
 * of the tenant shares that, or its writer ended before it was sealed;
 * GMB_REASON_BAD_STATE: it is not sealed in time, or this session has it;
 * GMB_REASON_POOL_EXHAUSTED: it was away, and not back in time. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_attach(
    gmb_client* client, const char* name, const gmb_attach_options* options,
    gmb_lease** lease);
/* Nobody attaches to it any more, its name is free, and it ends with its last
 * session. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_drop(gmb_client* client,
                                             const char* name);

GMB_EXPORT void* gmb_lease_data(const gmb_lease* lease);
GMB_EXPORT uint64_t gmb_lease_size_bytes(const gmb_lease* lease);
GMB_EXPORT uint64_t gmb_lease_id(const gmb_lease* lease);
GMB_EXPORT const char* gmb_lease_device(const gmb_lease* lease);
/* Not 0: of gmb_attach, mapped for reading. */
GMB_EXPORT int32_t gmb_lease_attached(const gmb_lease* lease);

/* Synchronises the device, unmaps, and waits for the broker's answer. The
 * lease is gone afterwards in every case. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_lease_release(gmb_lease* lease);
/* The same without waiting for the answer, for those who release many. Requests
 * of the session that follow find the bytes returned. A failure shows at the
 * broker, as unreturned bytes. */
GMB_EXPORT void gmb_lease_release_soon(gmb_lease* lease);

/* The contents of a GMB_CONTENTS_PRESERVE lease are not written to any more
 * (weights, say), so that one copy of them stays true. Cannot be undone. One
 * that is to be shared can be attached to from then on: what writes it has to
 * be done. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_lease_seal(gmb_lease* lease);

/* Synchronous byte copies, for tools and tests. They enter the gate
 * themselves. GMB_CODE_FAILED_PRECONDITION for a write to an attached lease. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_lease_copy_to_host(
    const gmb_lease* lease, void* to, uint64_t offset_bytes, uint64_t bytes);
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_lease_copy_from_host(
    gmb_lease* lease, uint64_t offset_bytes, const void* from, uint64_t bytes);
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_lease_fill(gmb_lease* lease,
                                                   uint64_t offset_bytes,
                                                   uint8_t value,
                                                   uint64_t bytes);

/* --- A heap: blocks of one device's memory, cut from few large leases.
 * gmb/heap.h has the rules of streams, captures and errors. */

typedef struct gmb_heap gmb_heap;

/* For a wait, of any call: not at all. */
#define GMB_WAIT_NONE INT64_C(-2)

typedef struct gmb_heap_options {
  size_t struct_size;
  const char* device; /* UUID; NULL: the broker's only device */
  /* It grows by up to half of what it has, at least and at most so many bytes;
     0: 64 MiB and 1 GiB. */
  uint64_t least_growth_bytes;
  uint64_t most_growth_bytes;
  int64_t wait_ms;    /* for others' memory when there is no other; 0: 5 s;
                         GMB_WAIT_NONE; GMB_WAIT_LONGEST */
  int32_t contents;   /* GMB_CONTENTS_..., of the leases */
  int32_t keep_empty; /* not 0: empty leases are given back by gmb_heap_trim
                         alone, not when the broker asks */
  const char* const*
      access_from; /* UUIDs of further devices that may access it */
  size_t access_from_count;
} gmb_heap_options;

GMB_EXPORT void gmb_heap_options_init(gmb_heap_options* options,
                                      size_t struct_size);

/* Takes no memory yet. The client is closed after the heap is destroyed. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_create(
    gmb_client* client, const gmb_heap_options* options, gmb_heap** heap);
/* Gives all of its leases back, with what lies in them. Its graph pools have to
 * be freed before. */
GMB_EXPORT void gmb_heap_destroy(gmb_heap* heap);

/* A stream is a cudaStream_t (CUstream); NULL is the legacy default stream, and
 * not to be passed by a program that is built with per-thread default streams.
 * cudaStreamPerThread is refused. At least `bytes`, aligned to 512; NULL and no
 * error for 0 bytes. GMB_CODE_RESOURCE_EXHAUSTED, with the broker's reason,
 * when there is no memory. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_allocate(gmb_heap* heap,
                                                      uint64_t bytes,
                                                      void* stream,
                                                      void** address);
/* In the order of the stream that it was allocated for, or of another. An
 * address that is none of a live block is GMB_CODE_INVALID_ARGUMENT, and
 * nothing is changed; NULL is fine. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_free(gmb_heap* heap,
                                                  void* address);
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_free_on(gmb_heap* heap,
                                                     void* address,
                                                     void* stream);
/* The block, once freed, is used again when the work has ended that is on the
 * stream at that time. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_record_stream(gmb_heap* heap,
                                                           void* address,
                                                           void* stream);
/* Before a stream is destroyed: waits until its work has ended. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_detach_stream(gmb_heap* heap,
                                                           void* stream);
/* Grows, if need be, so that one block of `bytes` can be had at once. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_prepare(gmb_heap* heap,
                                                     uint64_t bytes);
/* Gives empty leases back, until they are `bytes` together; says how many. */
GMB_EXPORT uint64_t gmb_heap_trim(gmb_heap* heap, uint64_t bytes);

typedef struct gmb_heap_stats {
  uint64_t allocated_bytes; /* of live blocks */
  uint64_t peak_allocated_bytes;
  uint64_t held_bytes; /* freed, while other streams may still use them */
  uint64_t leased_bytes;
  uint64_t peak_leased_bytes;
  uint64_t empty_bytes; /* of leases that no block lies in */
  uint64_t largest_free_bytes;
  uint64_t blocks; /* live */
  uint64_t leases;
  uint64_t allocations; /* that succeeded, so far */
  uint64_t frees;
  uint64_t growths;         /* leases taken so far */
  uint64_t returned_leases; /* and given back */
  uint64_t out_of_memory;   /* allocations that failed */
} gmb_heap_stats;

GMB_EXPORT void gmb_heap_statistics(const gmb_heap* heap, gmb_heap_stats* stats,
                                    size_t element_size);

/* Memory for CUDA graphs: see GraphPool in gmb/heap.h. */
typedef struct gmb_graph_pool gmb_graph_pool;

GMB_EXPORT GMB_NODISCARD gmb_error* gmb_heap_prepare_graphs(
    gmb_heap* heap, uint64_t bytes, gmb_graph_pool** pool);
/* Before a stream's capture begins, and after it has ended. */
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_graph_pool_begin(gmb_graph_pool* pool,
                                                         void* stream);
GMB_EXPORT GMB_NODISCARD gmb_error* gmb_graph_pool_end(gmb_graph_pool* pool,
                                                       void* stream);
/* Its graphs are destroyed, and launches of them have ended. */
GMB_EXPORT void gmb_graph_pool_free(gmb_graph_pool* pool);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* GMB_C_API_H_ */
