// Sessions that ask as fast as the broker takes it, and take all answers: each
// frame asks hundreds of times, so that it costs the broker far more than them.
#include <string>

#include "tests/attack/asking.h"
#include "tests/attack/attack.h"

namespace gmb::attack {
namespace {

constexpr uint32_t kAnyWindow = 0x7fff'ffff;
constexpr uint64_t kMoreThanThereIs = uint64_t{1} << 40;

}  // namespace

absl::Status QuotaQuestions(Attack& attack) {
  v1::ClientMessage ask;
  ask.set_request_id(1);  // no report of quotas is a repetition of another
  ask.mutable_get_quota();
  KeepAsking({.questions = {ask}, .answers_window = kAnyWindow}, attack);
  return absl::OkStatus();
}

// Messages that nobody answers, so that no answer holds them back.
absl::Status Notices(Attack& attack) {
  v1::ClientMessage notice;
  notice.mutable_unmapped()->set_lease_id(1);
  notice.mutable_unmapped()->set_move(1);
  KeepAsking({.questions = {notice}, .answers_window = kAnyWindow}, attack);
  return absl::OkStatus();
}

// Requests that the quota engine decides on, with all that it looks at: memory
// that is not there, at once and after a wait.
absl::Status HopelessRequests(Attack& attack) {
  v1::ClientMessage now;
  now.mutable_acquire()->set_bytes(kMoreThanThereIs);
  v1::ClientMessage later = now;
  later.mutable_acquire()->mutable_wait()->set_nanos(1'000'000);
  KeepAsking(
      {.questions = {now, later}, .anew = true, .answers_window = kAnyWindow},
      attack);
  return absl::OkStatus();
}

// As many as may wait, in every way that a request can: all of them are kept.
absl::Status WaitingRequests(Attack& attack) {
  constexpr uint64_t kOfEachKind = 1024;
  v1::ClientMessage lease;
  lease.mutable_acquire()->set_bytes(attack.options().bytes);
  lease.mutable_acquire()->set_share_as(std::string(128, 'n'));
  lease.mutable_acquire()->mutable_wait()->set_seconds(3600);
  v1::ClientMessage attach;
  attach.mutable_attach()->set_name(std::string(128, 'a'));
  attach.mutable_attach()->mutable_wait()->set_seconds(3600);
  v1::ClientMessage restore;
  restore.mutable_restore()->mutable_wait()->set_seconds(3600);
  KeepAsking({.questions = {lease, attach, restore},
              .anew = true,
              .answers_window = kAnyWindow,
              .most = 3 * kOfEachKind},
             attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
