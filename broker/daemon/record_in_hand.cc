// A broker takes over, and leaves word of the record that it has in hand.
#include "broker/daemon/record_in_hand.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "broker/daemon/kept_entry.h"
#include "broker/log/logging.h"

namespace gmb::broker {

void RecordInHand::Begin(const SharedFd& last) {
  absl::StatusOr<std::unique_ptr<AdoptionMarks>> marks =
      AdoptionMarks::Begin(last);
  absl::Status put = marks.status();
  if (marks.ok()) {
    marks_ = *std::move(marks);
    out_of_memory_.emplace(marks_.get());
    if (!marks_->is_new()) return;
    RemoveKept(std::string(AdoptionMarks::kKey), client_);
    put = PutFd(AdoptionMarks::kKey, marks_->fd(), client_);
  }
  if (!put.ok())
    LogEvent(LogLevel::kWarning, "not_kept", {{"message", put.message()}});
}

void RecordInHand::Take(RecordKind kind, uint64_t id) {
  if (marks_ != nullptr) marks_->Take(AdoptionMarks::Step::kTaking, {kind, id});
}

void RecordInHand::LetGo() {
  if (marks_ != nullptr) marks_->LetGo();
}

void RecordInHand::End() {
  out_of_memory_.reset();
  marks_.reset();
  RemoveKept(std::string(AdoptionMarks::kKey), client_);
}

}  // namespace gmb::broker
