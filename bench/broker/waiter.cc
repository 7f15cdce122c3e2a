#include "bench/broker/waiter.h"

#include <stop_token>
#include <utility>

#include "absl/time/clock.h"

namespace gmb::bench {

Waiter::Waiter(Client* client, uint64_t bytes, const std::string& uuid,
               absl::Duration wait)
    : thread_([this, client, bytes, uuid, wait](const std::stop_token& stop) {
        AcquireOptions options;
        options.device = uuid;
        options.wait = wait;
        options.cancel = stop;
        options.on_waiting = [this](uint64_t) {
          if (!std::exchange(told_, true)) queued_.set_value(absl::OkStatus());
        };
        absl::StatusOr<Lease> lease = client->Acquire(bytes, options);
        const absl::Time at = absl::Now();
        if (!told_) {
          queued_.set_value(lease.ok() ? absl::FailedPreconditionError(
                                             "the pool was not full")
                                       : lease.status());
        }
        if (!lease.ok()) {
          served_.set_value(lease.status());
        } else {
          served_.set_value(Served{at, *std::move(lease)});
        }
      }) {}

absl::Status Waiter::AwaitQueued() { return queued_.get_future().get(); }

absl::StatusOr<Waiter::Served> Waiter::Await() {
  return served_.get_future().get();
}

}  // namespace gmb::bench
