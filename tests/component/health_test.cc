// The standard services on the operators' gmb.sock, and what probes ask: gRPC
// health and reflection without any token, `gmb status` with its exit code.
#include <memory>
#include <string>

#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "tests/component/component_test.h"
#include "tests/component/raw_session.h"

namespace gmb::component {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The distribution has no headers for these services, so their few messages are
// written by hand: HealthCheckResponse{status: SERVING, NOT_SERVING}, and
// ServerReflectionRequest{list_services: "*"}.
const std::string kServing = "\x08\x01";
const std::string kNotServing = "\x08\x02";
const std::string kListServices = "\x3a\x01*";

grpc::ByteBuffer BufferOf(const std::string& bytes) {
  const grpc::Slice slice(bytes);
  return {&slice, 1};
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return "no bytes";
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// One message to `method` of whoever listens, and its one answer. Every such
// call carries no metadata of ours.
std::string Ask(const std::string& socket_dir, const std::string& method,
                const std::string& request) {
  grpc::GenericStub stub(OpenChannel(socket_dir));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  const auto done = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto call = stub.PrepareCall(&context, method, &queue);
  call->StartCall(nullptr);
  (void)done();
  call->WriteLast(BufferOf(request), {}, nullptr);
  (void)done();
  grpc::ByteBuffer answer;
  call->Read(&answer, nullptr);
  const bool answered = done();
  grpc::Status status;
  call->Finish(&status, nullptr);
  (void)done();
  if (!answered) return "no answer: " + status.error_message();
  return status.ok() ? BytesOf(answer) : status.error_message();
}

class HealthTest : public ComponentTest {
 protected:
  void SetUp() override {
    BrokerOptions options;
    options.drain_deadline = "120s";
    StartBroker(options);
    MakeTenant("a");
  }
  [[nodiscard]] std::string Health(const std::string& socket_dir) const {
    return Ask(socket_dir, "/grpc.health.v1.Health/Check", "");
  }
};

TEST_F(HealthTest, ServesUntilItDrainsAndProbesKnowReadyFromAlive) {
  EXPECT_EQ(Health(SocketDir() + "/admin"), kServing);
  EXPECT_EQ(Gmb({"status", "-q"}).exit_code, 0);
  auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(Health(TenantDir("a")), HasSubstr("admin/gmb.sock"));
  broker().program().Signal(SIGTERM);
  EXPECT_TRUE(
      Await([this] { return Health(SocketDir() + "/admin") == kNotServing; }));
  EXPECT_EQ(Gmb({"status", "-q"}).exit_code, 1) << "not ready";
  EXPECT_EQ(Gmb({"status", "--output", "json"}).exit_code, 0) << "but alive";
  client.reset();
  EXPECT_EQ(broker().program().AwaitExit(), 0);
}

TEST_F(HealthTest, ReflectionListsTheServices) {
  const std::string services =
      Ask(SocketDir() + "/admin",
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          kListServices);
  EXPECT_THAT(services, AllOf(HasSubstr("gmb.v1.SessionService"),
                              HasSubstr("gmb.v1.Admin"),
                              HasSubstr("grpc.health.v1.Health")));
}

// Each open call of it would cost the broker a thread.
TEST_F(HealthTest, TenantsHaveNoReflection) {
  const auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(
      Ask(TenantDir("a"),
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          kListServices),
      HasSubstr("admin/gmb.sock"));
}

}  // namespace
}  // namespace gmb::component
