#ifndef GMB_BROKER_SERVER_EVENT_STREAM_H_
#define GMB_BROKER_SERVER_EVENT_STREAM_H_

#include <deque>
#include <set>
#include <string>

#include "base/mutex.h"
#include "broker/core/event_bus.h"
#include "broker/gateway/grpc_connections.h"
#include "gmb/v1/admin.pb.h"
#include "grpcpp/support/server_callback.h"

namespace gmb::broker {

// One `gmb watch`: events from now on until the call is cancelled, those that the
// request wants. A reader that lets kMaxQueued of them pile up loses later ones
// and is told how many; those that were lost before they were looked at count for
// every reader.
// Deletes itself when gRPC is done with it.
class EventStream : public grpc::ServerWriteReactor<v1::Event> {
 public:
  static constexpr size_t kMaxQueued = 4096;

  EventStream(EventBus* bus, const v1::WatchRequest& wanted,
              GrpcConnections::Proof proof);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  void OnEvent(const v1::Event& event);
  [[nodiscard]] bool Wants(const v1::Event& event) const;
  void WriteNext();
  void End();

  EventBus* const bus_;
  const std::string tenant_;           // empty: of all
  const std::set<std::string> kinds_;  // empty: all
  const GrpcConnections::Proof proof_;
  uint64_t subscription_ = 0;

  base::Mutex mu_;
  std::deque<v1::Event> queue_ ABSL_GUARDED_BY(mu_);
  uint64_t missed_ ABSL_GUARDED_BY(mu_) = 0;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;  // a write is in flight or starting
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  v1::Event current_;  // gRPC's while busy_
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_SERVER_EVENT_STREAM_H_
