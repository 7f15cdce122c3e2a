// Sessions that ask, and say by HTTP/2's own means that they take no answer:
// nothing of it lies in a socket, where it could be seen.
#include "tests/attack/asking.h"
#include "tests/attack/attack.h"

namespace gmb::attack {

absl::Status UnreadAnswers(Attack& attack) {
  Asking asking;
  v1::ClientMessage ask;
  ask.set_request_id(1);  // no report of quotas is a repetition of another
  ask.mutable_get_quota();
  asking.questions = {ask};
  asking.answers_window = 0;
  // Some more would end the session, and give its memory back.
  asking.most = 8'000;
  KeepAsking(asking, attack);
  return absl::OkStatus();
}

}  // namespace gmb::attack
