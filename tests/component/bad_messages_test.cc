// Messages that are larger than any honest one, as they come or once they are
// inflated: they cost their stream, and not the session.
#include <memory>
#include <string>

#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

class BadMessagesTest : public ComponentTest {
 protected:
  void SetUp() override {
    StartBroker();
    MakeTenant("a");
  }
  // How a stream ends on which that message was sent.
  static grpc::Status Say(const RawSession& session,
                          const std::string& socket_dir,
                          const v1::ClientMessage& message,
                          grpc_compression_algorithm algorithm) {
    const auto stub = v1::SessionService::NewStub(OpenChannel(socket_dir));
    grpc::ClientContext context;
    context.AddMetadata(kTokenKey, session.welcome.token());
    context.set_compression_algorithm(algorithm);
    const auto stream = stub->Session(&context);
    stream->Write(message);
    v1::BrokerMessage answer;
    while (stream->Read(&answer)) {
    }
    return stream->Finish();
  }
  void ExpectSessionLives(const RawSession& session) const {
    const auto stream = session.OpenStream(TenantDir("a"));
    v1::ClientMessage ask;
    ask.set_request_id(1);
    ask.mutable_get_quota();
    ASSERT_TRUE(stream->Send(ask));
    const auto answer = stream->ReceiveAnswer(1);
    EXPECT_TRUE(answer.has_value() && answer->has_quota_report());
  }
};

TEST_F(BadMessagesTest, OneThatIsTooLargeEndsItsStreamAlone) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  v1::ClientMessage large;
  large.mutable_drop()->set_name(std::string(8 * 1024, 'x'));
  EXPECT_EQ(
      Say(session, TenantDir("a"), large, GRPC_COMPRESS_NONE).error_code(),
      grpc::StatusCode::RESOURCE_EXHAUSTED);
  ExpectSessionLives(session);
}

TEST_F(BadMessagesTest, NoneIsInflated) {
  const RawSession session = RawSession::Open(TenantDir("a")).value();
  v1::ClientMessage bomb;
  bomb.mutable_drop()->set_name(std::string(4 * 1024 * 1024, 'x'));
  for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
    EXPECT_EQ(Say(session, TenantDir("a"), bomb, algorithm).error_code(),
              grpc::StatusCode::UNIMPLEMENTED);
  }
  ExpectSessionLives(session);
}

}  // namespace
}  // namespace gmb::component
