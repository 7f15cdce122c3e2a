// `gmb metrics`: one text in pieces.
#include "broker/server/metrics_stream.h"

#include <utility>

namespace gmb::broker {

MetricsStream::MetricsStream(std::string text, GrpcConnections::Proof proof)
    : text_(std::move(text)), proof_(std::move(proof)) {
  WriteNext();
}

void MetricsStream::WriteNext() {
  if (written_ == text_.size()) {
    Finish(grpc::Status::OK);
    return;
  }
  piece_.set_text(text_.substr(written_, kPieceBytes));
  written_ += piece_.text().size();
  StartWrite(&piece_);
}

// A reader that goes away fails the write under way.
void MetricsStream::OnWriteDone(bool ok) {
  if (ok) {
    WriteNext();
  } else {
    Finish(grpc::Status::CANCELLED);
  }
}

}  // namespace gmb::broker
