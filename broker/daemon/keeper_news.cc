// The events that say whether the next broker would find all.
#include "broker/daemon/keeper_news.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "broker/machine/wire_form.h"

namespace gmb::broker {

void KeeperNews::SessionNotKept(uint64_t session,
                                const absl::Status& why) const {
  v1::Event event;
  event.set_kind("session_not_kept");
  event.set_session_id(session);
  Publish(std::move(event), std::string(why.message()));
}

void KeeperNews::Lost() {
  const std::string why =
      absl::StrCat(client_->displaced()
                       ? "it does not listen at its path any more, since the "
                         "directory was removed or made anew, and the next "
                         "broker would not find it: start one there"
                       : "it is dead, does not answer, or has no room for the "
                         "journal",
                   "; should the broker die now, all ends with it");
  SetProblem(why);
  v1::Event event;
  event.set_kind("keeper_lost");
  Publish(std::move(event), why);
}

void KeeperNews::Found() {
  SetProblem("");
  const uint64_t refused = client_->refused();
  v1::Event event;
  event.set_kind("keeper_found");
  Publish(std::move(event),
          refused == 0
              ? "it has everything again"
              : absl::StrCat("it has what it has room for: ", refused,
                             " entries end with this broker; raise its limit "
                             "on open files"));
}

void KeeperNews::LeftOut(uint64_t count) {
  if (count > 0 && !said_left_out_) {
    v1::Event event;
    event.set_kind("not_kept");
    Publish(std::move(event),
            absl::StrCat(count,
                         " sessions, leases or slabs are not kept, and "
                         "sessions that have such a lease end with this "
                         "broker: the journal or the keeper is full: raise "
                         "max_handles or max_sessions"));
  }
  said_left_out_ = count > 0;
}

void KeeperNews::SetProblem(const std::string& problem) {
  base::MutexLock lock(&mu_);
  problem_ = problem;
}

std::string KeeperNews::problem() const {
  base::MutexLock lock(&mu_);
  return problem_;
}

void KeeperNews::Publish(v1::Event event, const std::string& message) const {
  event.set_message(message);
  *event.mutable_at() = ToProto(clock_->WallTime());
  events_->Publish(std::move(event));
  events_->Wake();
}

}  // namespace gmb::broker
