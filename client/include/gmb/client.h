#ifndef GMB_CLIENT_H_
#define GMB_CLIENT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gmb/error.h"
#include "gmb/lease.h"
#include "gmb/options.h"
#include "gmb/scope.h"

namespace gmb {

class Client;

namespace internal {
class Session;
struct ExportedLease;
struct RangeHooks;
// For the C interface, and for heaps.
[[nodiscard]] Gate& GateOf(const Client& client);
[[nodiscard]] Session& SessionOf(const Client& client);
// As Acquire, for the preload library of `gmb run`, which maps the lease. With
// `asked` above 0 it is one that was asked for ahead of need.
[[nodiscard]] absl::StatusOr<Lease> AcquireUnmapped(
    const Client& client, uint64_t bytes, const AcquireOptions& options,
    uint64_t asked, const RangeHooks& hooks);
// Lets other processes of the tenant map the lease; `slab_fd` is null, or gets
// the handle of its only slab.
[[nodiscard]] absl::StatusOr<ExportedLease> ExportLease(const Client& client,
                                                        const Lease& lease,
                                                        int* slab_fd);
// Another process's lease, likewise.
[[nodiscard]] absl::StatusOr<Lease> AttachExported(
    const Client& client, const ExportedLease& exported,
    const std::string& device, const RangeHooks& hooks);
// Asks for up to `count` such leases without waiting, each of what is free now:
// their numbers.
[[nodiscard]] std::vector<uint64_t> AskAhead(const Client& client,
                                             uint64_t bytes,
                                             const AcquireOptions& options,
                                             size_t count);
// As Acquire without a wait, and up to `ahead` more leases of as many bytes, of
// what is free now: all are asked for in one message.
[[nodiscard]] absl::StatusOr<std::vector<Lease>> AcquireWithMore(
    const Client& client, uint64_t bytes, const AcquireOptions& options,
    size_t ahead);
// It goes back; waits for the broker's answer to it.
void ForgetAhead(const Client& client, uint64_t asked);
// Another client of its session, which `gmb run` has opened; null when the
// options mean another broker or tenant. Of the options only the handler of
// trims is heeded. The gate is the session's: a client's own is on from the
// start, and off is a scope that is in.
[[nodiscard]] absl::StatusOr<std::unique_ptr<Client>> Join(
    const Client& client, const ClientOptions& options);
}  // namespace internal

// The result of AttachOrFill.
struct SharedLease {
  Lease lease;
  // By this process. Its mapping is writable all the same; do not write to it.
  bool filled = false;
};

// One session with a broker. Thread-safe: any number of threads may have
// requests in flight. Never logs, exits, or throws.
//
// Errors. A refusal by the broker carries an ErrorDetail (gmb/error.h) and a
// message that says what to do. A status without one comes from the library:
//   UNAVAILABLE          the broker cannot be reached, or the session is over
//   DEADLINE_EXCEEDED    the broker did not answer within answer_timeout
//   CANCELLED            withdrawn, and the broker did not confirm it in time
//   FAILED_PRECONDITION  this process was forked, or this build or machine
//                        lacks the device
//   RESOURCE_EXHAUSTED   this process ran out of memory or file descriptors
//   NOT_FOUND            this process cannot see the device; from Connect: the
//                        broker has no tenant of the socket directory's name
//   INTERNAL             the driver failed, or the broker broke the protocol
//
// Breaks. If the gRPC stream breaks while the handle socket lives, the library
// opens a new one and repeats the unanswered requests; calls take longer and
// do not fail. If the broker hangs up (it stopped or died, or ended the
// session), the session is over: calls return UNAVAILABLE, status() says why,
// mapped memory stays usable. Connect anew to go on.
//
// Forks. A child of fork() has no session: every call in it fails with
// FAILED_PRECONDITION, and destroying a Client or Lease there does nothing.
// Connect in the child instead, after exec or before gRPC is used in the
// parent.
class Client {
 public:
  // Greets the broker and waits until both of its sockets have answered.
  [[nodiscard]] static absl::StatusOr<std::unique_ptr<Client>> Connect(
      ClientOptions options = {});
  // Leases that are still held stay valid. No other call may be in progress.
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // Leases `bytes`, rounded up to the device's granularity, and maps them as
  // one contiguous range. All or nothing. Blocks for at most
  // options.wait + answer_timeout, and the time that mapping takes (the first
  // lease on a GPU opens the device: some 250 ms).
  [[nodiscard]] absl::StatusOr<Lease> Acquire(
      uint64_t bytes, const AcquireOptions& options = {});

  // --- Shared leases (docs/shared.md): one session writes and seals what all
  // sessions of its tenant may read.

  // Maps a shared lease of this tenant, to be read: a write to it through a
  // pointer faults (a GPU's ends the process's work there; of an ipc device it
  // goes through, and must not be made). It is a lease as others are from then
  // on: Release leaves it to those who are attached. Blocks as Acquire does.
  //   NO_SUCH_LEASE   nobody of the tenant shares that, or its writer ended
  //                   before it was sealed
  //   BAD_STATE       not sealed within options.wait; or this session has it
  //   POOL_EXHAUSTED  it was away, and not back within options.wait
  //   OVERCOMMITTED   this session's gate is off, and others' guarantees rest
  //                   on the bytes: turn it on first
  [[nodiscard]] absl::StatusOr<Lease> Attach(const std::string& name,
                                             const AttachOptions& options = {});
  // For processes that start at once: attaches to the shared lease, or, in one
  // of them, acquires it as options.share_as = name, calls `fill` in a scope of
  // the gate, and seals it. The others wait meanwhile, and one takes over when
  // that fails. All of that within options.wait, but for `fill`, which is not
  // interrupted. After an error nothing is held: that of `fill`, or of the call
  // that failed; FAILED_PRECONDITION when the lease of that name is smaller
  // than `bytes`, or on another device than asked for; INVALID_ARGUMENT for an
  // empty name.
  [[nodiscard]] absl::StatusOr<SharedLease> AttachOrFill(
      const std::string& name, uint64_t bytes, const AcquireOptions& options,
      const FillHandler& fill);
  // Nobody attaches to it any more, its name is free, and it ends with its last
  // session. NO_SUCH_LEASE.
  [[nodiscard]] absl::Status Drop(const std::string& name);

  // One view a device pool.
  [[nodiscard]] absl::StatusOr<std::vector<QuotaView>> GetQuota();

  // --- The gate (docs/client.md): outside of scopes the broker may take the
  // session's memory for a while.

  // From now on leases are used inside scopes only, on all threads. Until then
  // nothing is taken. Tells the broker and waits for its answer; after an error
  // the gate is as it was. FAILED_PRECONDITION from a broker without gates.
  [[nodiscard]] absl::Status TurnGateOn(const GateOptions& options = {});
  // As if a scope were in that never ends: waits and fails as Enter does, and
  // with OVERCOMMITTED when the broker could then not keep what it has
  // guaranteed to others. After an error the gate is on.
  [[nodiscard]] absl::Status TurnGateOff(absl::Duration wait);
  // Enters a scope: with leaving it some 40 ns on an H200's machine, and 10 ns
  // when this thread is in one already.
  // While the memory is away it blocks for at most `wait` until it is back.
  // DEADLINE_EXCEEDED when that takes longer, a refusal of the broker
  // (CONTENTS_LOST, say), UNAVAILABLE when the session is over and the memory
  // away, RESOURCE_EXHAUSTED when the thread is in scopes of too many sessions.
  // With the gate off, scopes are counted and never wait.
  [[nodiscard]] absl::StatusOr<Scope> Enter(absl::Duration wait);
  // The same for a scope in which a CUDA stream is captured: begins when the
  // library is not synchronising the device, which would destroy the capture.
  [[nodiscard]] absl::StatusOr<Scope> EnterCapture(absl::Duration wait);

  // Says how many bytes on_trim could release at once, on the device (UUID;
  // empty: the broker's only one): the broker asks sessions that have some. A
  // number, not a promise; 0 at first. Does not wait for the broker. NOT_FOUND
  // for a device that the broker does not have.
  [[nodiscard]] absl::Status SetTrimmable(const std::string& device,
                                          uint64_t bytes);

  // OK while the session lives; otherwise what every call returns.
  [[nodiscard]] absl::Status status() const;

  // As the broker said at the greeting.
  [[nodiscard]] const std::string& tenant() const;
  [[nodiscard]] uint64_t session_id() const;
  [[nodiscard]] const std::string& broker_version() const;
  [[nodiscard]] const std::vector<Device>& devices() const;
  // Where the broker keeps contents that have to leave a device; 0: nowhere, and
  // nothing with contents is lent.
  [[nodiscard]] uint64_t host_pool_bytes() const;
  // Warnings of the greeting, for people to read; often empty.
  [[nodiscard]] const std::vector<std::string>& warnings() const;

 private:
  friend internal::Gate& internal::GateOf(const Client& client);
  friend internal::Session& internal::SessionOf(const Client& client);
  friend absl::StatusOr<Lease> internal::AcquireUnmapped(
      const Client& client, uint64_t bytes, const AcquireOptions& options,
      uint64_t asked, const internal::RangeHooks& hooks);
  friend absl::StatusOr<std::vector<Lease>> internal::AcquireWithMore(
      const Client& client, uint64_t bytes, const AcquireOptions& options,
      size_t ahead);
  friend absl::StatusOr<Lease> internal::AttachExported(
      const Client& client, const internal::ExportedLease& exported,
      const std::string& device, const internal::RangeHooks& hooks);
  friend absl::StatusOr<std::unique_ptr<Client>> internal::Join(
      const Client& client, const ClientOptions& options);
  struct Impl;
  explicit Client(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace gmb

#endif  // GMB_CLIENT_H_
