#ifndef GMB_BROKER_CORE_STREAM_SINK_H_
#define GMB_BROKER_CORE_STREAM_SINK_H_

#include "absl/status/status.h"
#include "gmb/v1/session.pb.h"

namespace gmb::broker {

// One open Session stream, seen from the outbox. Thread-safe.
class StreamSink {
 public:
  virtual ~StreamSink() = default;
  // Starts one write; the sink calls Outbox::OnWriteDone when it may take the
  // next. Returns false when the stream is over (then no OnWriteDone follows).
  virtual bool Write(v1::BrokerMessage message) = 0;
  // Ends the stream with this status. May be called more than once.
  virtual void Close(const absl::Status& status) = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_STREAM_SINK_H_
