// `gmb run`: memory goes back only while no stream is captured.
#include "client/preload/captures.h"

#include <algorithm>

namespace gmb::preload {

void Captures::AwaitTurn() {
  const base::MutexLock lock(&mu_);
  // Counted first, so that a stream of frees cannot keep it waiting for ever.
  ++beginning_;
  while (synchronizing_ > 0) quiet_.Wait(&mu_);
}

void Captures::Began(CUstream stream, CUcontext context,
                     std::optional<CUdevice> device) {
  const base::MutexLock lock(&mu_);
  --beginning_;
  streams_.emplace(std::pair(context, stream), device);
  begun_.NotifyAll();
}

void Captures::DidNotBegin() {
  const base::MutexLock lock(&mu_);
  --beginning_;
  begun_.NotifyAll();
}

void Captures::Ended(CUstream stream, CUcontext context) {
  const base::MutexLock lock(&mu_);
  auto found = streams_.find({context, stream});
  if (found == streams_.end()) {
    found =
        std::find_if(streams_.begin(), streams_.end(), [&](const auto& one) {
          return one.first.second == stream &&
                 (context == nullptr || one.first.first == nullptr);
        });
  }
  if (found != streams_.end()) streams_.erase(found);
}

void Captures::ContextEnded(CUcontext context) {
  const base::MutexLock lock(&mu_);
  std::erase_if(streams_,
                [&](const auto& one) { return one.first.first == context; });
}

void Captures::PrimaryEnded(CUdevice device,
                            const std::set<CUcontext>& others) {
  const base::MutexLock lock(&mu_);
  std::erase_if(streams_, [&](const auto& one) {
    return one.second == device && !others.contains(one.first.first);
  });
}

bool Captures::BeginSynchronizing(TimePoint until) {
  const base::MutexLock lock(&mu_);
  while (beginning_ > 0 && streams_.empty() &&
         std::chrono::steady_clock::now() < until) {
    begun_.WaitUntil(&mu_, until);
  }
  if (Capturing()) return false;
  ++synchronizing_;
  return true;
}

void Captures::EndSynchronizing() {
  const base::MutexLock lock(&mu_);
  if (--synchronizing_ == 0) quiet_.NotifyAll();
}

bool Captures::Any() {
  const base::MutexLock lock(&mu_);
  return Capturing();
}

}  // namespace gmb::preload
