// Does to a slab's memory whatever the kernel lets a holder of its fd do, and
// gives it back.
#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <vector>

#include "tests/attack/attack.h"
#include "tests/attack/hand_stream.h"
#include "tests/attack/own_lease.h"
#include "tests/attack/own_session.h"

namespace gmb::attack {
namespace {

constexpr absl::Duration kTamperPatience = absl::Seconds(10);
constexpr uint64_t kTamperBytes = uint64_t{8} << 20;
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

void Tamper(const Slab& slab, bool change_owner) {
  const int fd = slab.fd.get();
  const auto size = static_cast<off_t>(slab.bytes);
  (void)::fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, size);
  (void)::fallocate(fd, FALLOC_FL_KEEP_SIZE, size, size);
  (void)::fallocate(fd, FALLOC_FL_COLLAPSE_RANGE, 0, 4'096);
  (void)::ftruncate(fd, 0);
  (void)::ftruncate(fd, off_t{1} << 40);
  (void)::flock(fd, LOCK_EX | LOCK_NB);
  (void)::fcntl(fd, F_SETLEASE, F_RDLCK);
  (void)::mlock(slab.at, 4'096);
  (void)::madvise(slab.at, slab.bytes, MADV_REMOVE);
  (void)::fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE);
  (void)::fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE);
  (void)::fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL);
  (void)::fchmod(fd, 0);
  if (change_owner) (void)::fchown(fd, 12'345, 12'345);
}

}  // namespace

absl::Status TamperSlabs(Attack& attack) {
  const AttackOptions& options = attack.options();
  while (attack.GoesOn()) {
    absl::StatusOr<OwnSession> session = OwnSession::Greet(options.socket_dir);
    HandStream stream;
    if (!session.ok() ||
        !stream.Open(options.socket_dir, session->welcome().token())) {
      attack.Count("refused");
      ::poll(nullptr, 0, 10);
      continue;
    }
    const auto grant = stream.Ask(AcquireOf(kTamperBytes), kTamperPatience);
    if (!grant.has_value() || !grant->has_grant()) {
      attack.Count("no_lease");
      continue;
    }
    auto slabs = TakeSlabs(session->socket(), grant->grant().slabs());
    if (!slabs.ok()) continue;
    for (const Slab& slab : *slabs) Tamper(slab, options.keep);
    slabs->clear();
    attack.Count("tampered");
    const auto released =
        stream.Ask(ReleaseOf(grant->grant().lease_id()), kTamperPatience);
    attack.Count(released.has_value() ? "released" : "not_released");
    ::poll(nullptr, 0, 10);
  }
  return absl::OkStatus();
}

}  // namespace gmb::attack
