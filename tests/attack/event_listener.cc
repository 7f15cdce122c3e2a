// The events that the broker tells its operators while it is attacked.
#include "tests/attack/event_listener.h"

#include "absl/strings/str_cat.h"

namespace gmb::attack {
namespace {

// How a session ends of a client that is done.
constexpr char kByItself[] = "it disconnected";

}  // namespace

EventListener::EventListener(const std::string& socket_dir)
    : admin_(cli::AdminClient::Connect(socket_dir).value()),
      reader_(admin_.Watch()),
      thread_([this] { Listen(); }) {}

EventListener::~EventListener() {
  reader_->Cancel();
  thread_.join();
}

void EventListener::Listen() {
  v1::Event event;
  while (reader_->Read(&event)) {
    if (event.kind() != "session_closed") continue;
    base::MutexLock lock(&mu_);
    ended_.push_back(event);
  }
}

std::vector<std::string> EventListener::Ended(const std::string& tenant) const {
  base::MutexLock lock(&mu_);
  std::vector<std::string> reasons;
  for (const v1::Event& event : ended_) {
    if (event.tenant() == tenant) reasons.push_back(event.message());
  }
  return reasons;
}

std::vector<std::string> EventListener::EndedByOthers(
    const std::string& attacker) const {
  base::MutexLock lock(&mu_);
  std::vector<std::string> sessions;
  for (const v1::Event& event : ended_) {
    if (event.tenant() != attacker && event.message() != kByItself) {
      sessions.push_back(absl::StrCat(event.tenant(), " ", event.session_id(),
                                      ": ", event.message()));
    }
  }
  return sessions;
}

}  // namespace gmb::attack
