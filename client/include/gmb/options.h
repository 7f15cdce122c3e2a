#ifndef GMB_OPTIONS_H_
#define GMB_OPTIONS_H_

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace gmb {

// How a lease's contents are to be treated when its bytes are needed elsewhere.
enum class Contents {
  kPreserve,  // kept, in host memory if need be
  kDiscard,   // may be lost: then zeros, or older bytes of the same tenant
  kResident,  // never moved (NCCL, RDMA, peers)
};

enum class DeviceKind {
  kUnknown,  // of a broker newer than this library
  kVmm,      // GPU memory, mapped with the driver's virtual memory management
  kIpc,      // GPU memory, opened with legacy CUDA IPC
  kHost,     // shared host memory
};

// A device pool that the broker offers.
struct Device {
  // "GPU-8f5c..." as NVIDIA prints it; "host-0" for host memory.
  std::string uuid;
  DeviceKind kind = DeviceKind::kUnknown;
  std::string name;
  // Every lease is rounded up to a multiple of it.
  uint64_t granularity_bytes = 0;
  uint64_t total_bytes = 0;  // of the device, not of the pool
};

// This tenant's quota on one device pool, and its use.
struct QuotaView {
  std::string device;             // UUID
  uint64_t guarantee_bytes = 0;   // always obtainable
  uint64_t limit_bytes = 0;       // never exceeded by new leases
  double weight = 0;              // share of the surplus
  uint64_t leased_bytes = 0;      // by all of the tenant's processes together
  uint64_t unreturned_bytes = 0;  // given back but still held by some process
  uint64_t pool_bytes = 0;
  // The most that an Acquire without waiting could get now.
  uint64_t obtainable_bytes = 0;
  // Leased above the limit; new requests are refused until 0.
  uint64_t over_limit_bytes = 0;
  uint64_t evicted_bytes = 0;  // of the leased ones, not on the device now
};

// Handlers run on one thread of the Client, one at a time, never after ~Client
// has returned (unless ~Client runs inside a handler, which is allowed). They
// may call the Client and its leases. A handler that is busy delays the next
// notice; of several notices about one device it sees the newest. An exception
// that a handler throws is caught and dropped.
//
// An operator changed the tenant's quota, or a pending change took effect.
using BudgetHandler = std::function<void(const QuotaView& quota)>;
// The broker is stopping, or this tenant is being deleted: nothing more is
// granted; release within `remaining`, and end the session.
using DrainHandler = std::function<void(absl::Duration remaining)>;
// The request waits in the broker's queue, behind `ahead` others. Runs on the
// thread that called Acquire, inside it. An exception that it throws is caught
// and dropped.
using WaitingHandler = std::function<void(uint64_t ahead)>;
// Others need memory: release what is cached and not needed, `bytes` of the
// device if that much is there, before it returns. Runs on a thread of its own
// under the rules above, beside the other handlers. The broker waits for at
// most `within` and then looks elsewhere: a request that the handler is late
// for is answered with nothing then, and passed on all the same, with `within`
// 0.
using TrimHandler = std::function<void(const std::string& device,
                                       uint64_t bytes, absl::Duration within)>;

struct ClientOptions {
  // The directory of the broker's sockets. Empty: the environment variable
  // GMB_SOCKET_DIR, and /run/gmb when that is unset too. Any length, any
  // characters.
  std::string socket_dir;
  // For brokers that tell tenants by token; empty otherwise. Any bytes.
  std::string tenant_token;
  // Shown to operators, at most 64 printable characters of it. Empty: this
  // program's name.
  std::string program;
  // For all of Connect.
  absl::Duration connect_timeout = absl::Seconds(5);
  // How long the broker may stay silent beyond what a request itself may wait
  // before the call fails (DEADLINE_EXCEEDED, or UNAVAILABLE without a stream).
  absl::Duration answer_timeout = absl::Seconds(30);
  BudgetHandler on_budget_changed;
  DrainHandler on_draining;
  TrimHandler on_trim;  // see Client::SetTrimmable
  // For `gmb run`, which marks each call of the driver in place of scopes: the
  // gate does not park by itself. Nothing for a program that has scopes.
  bool automatic_gate = false;
};

struct GateOptions {
  // Without a scope for so long, the session's memory may be taken: the gate is
  // parked. At most a day. A short time lends memory sooner, and makes the
  // first scope after it some microseconds slower.
  absl::Duration park_after = absl::Milliseconds(50);
  // Sessions of one tenant that name the same group (the ranks of one model,
  // say) lose their memory and get it back together, or not at all. Empty:
  // none. At most 63 printable characters.
  std::string group = {};
};

struct AcquireOptions {
  // UUID of the device; empty: the broker's only device.
  std::string device;
  Contents contents = Contents::kPreserve;
  // How long the request may wait for memory; at most 1 h is used. Zero: not at
  // all.
  absl::Duration wait = absl::ZeroDuration();
  // UUIDs of further devices that may read and write the memory.
  std::vector<std::string> access_from;
  // request_stop() on its source, from any thread, withdraws the request.
  // Acquire then returns CANCELLED within about a second, or the lease when
  // it had been granted already.
  std::stop_token cancel;
  WaitingHandler on_waiting;
  // Not empty: once it is sealed, other sessions of the tenant may attach to
  // the lease by this name: 1 to 128 printable characters, the tenant's own.
  // Taken from now on: NAME_TAKEN for a second one. Contents are kPreserve.
  std::string share_as;
  // With share_as: it stays when nobody is attached any more, until it is
  // dropped.
  bool keep = false;
};

struct AttachOptions {
  // How long to wait until the lease is sealed, and back on the device; at most
  // 1 h is used. Zero: not at all.
  absl::Duration wait = absl::ZeroDuration();
  // As those of AcquireOptions. Devices may read only, as this one.
  std::vector<std::string> access_from;
  std::stop_token cancel;
  WaitingHandler on_waiting;
};

class Lease;
// Writes the contents of a lease that is to be shared. When it returns, the
// device has to be done with it: wait for the streams that write. An exception
// that it throws is an error of the call (INTERNAL).
using FillHandler = std::function<absl::Status(Lease& lease)>;

}  // namespace gmb

#endif  // GMB_OPTIONS_H_
