// The standard services on the operators' gmb.sock, and what probes ask: gRPC
// health and reflection without any token, `gmb status` with its exit code.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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
const std::string kCheck = "/grpc.health.v1.Health/Check";
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

// A call that carries no metadata of ours.
class PlainCall {
 public:
  PlainCall(const std::shared_ptr<grpc::Channel>& channel,
            const std::string& method)
      : stub_(channel) {
    context_.set_deadline(std::chrono::system_clock::now() + kPatience);
    call_ = stub_.PrepareCall(&context_, method, &queue_);
    call_->StartCall(nullptr);
    (void)Done();
  }
  ~PlainCall() {
    if (finished_) return;
    context_.TryCancel();
    (void)Finish();
  }
  PlainCall(const PlainCall&) = delete;
  PlainCall& operator=(const PlainCall&) = delete;

  // The answer to its one message; nullopt: the call has ended.
  std::optional<std::string> Ask(const std::string& request) {
    call_->WriteLast(BufferOf(request), {}, nullptr);
    (void)Done();
    grpc::ByteBuffer answer;
    call_->Read(&answer, nullptr);
    if (!Done()) return std::nullopt;
    return BytesOf(answer);
  }
  grpc::Status Finish() {
    grpc::Status status;
    call_->Finish(&status, nullptr);
    (void)Done();
    finished_ = true;
    return status;
  }

 private:
  bool Done() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::CompletionQueue queue_;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call_;
  bool finished_ = false;
};

// One message to `method`, and its one answer.
std::string Ask(const std::shared_ptr<grpc::Channel>& channel,
                const std::string& method, const std::string& request) {
  PlainCall call(channel, method);
  const std::optional<std::string> answer = call.Ask(request);
  const grpc::Status status = call.Finish();
  if (!answer.has_value()) return "no answer: " + status.error_message();
  return status.ok() ? *answer : status.error_message();
}
std::string Ask(const std::string& socket_dir, const std::string& method,
                const std::string& request) {
  return Ask(OpenChannel(socket_dir), method, request);
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
    return Ask(socket_dir, kCheck, "");
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
TEST_F(HealthTest, TenantsHaveNeitherHealthNorReflection) {
  const auto client = ConnectAs("a");
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(Ask(TenantDir("a"), kCheck, ""), HasSubstr("admin/gmb.sock"));
  EXPECT_THAT(
      Ask(TenantDir("a"),
          "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
          kListServices),
      HasSubstr("admin/gmb.sock"));
}

// A tenant's connection would be ended by so many (docs/protocol.md, section 5).
TEST_F(HealthTest, OperatorsCallAsFastAsTheyLike) {
  constexpr int kCalls = 2000;
  const auto channel = OpenChannel(SocketDir() + "/admin");
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kCalls; ++i)
    ASSERT_EQ(Ask(channel, kCheck, ""), kServing);
  const std::chrono::duration<double> took =
      std::chrono::steady_clock::now() - start;
  if (took.count() > kCalls / 40.)
    GTEST_SKIP() << "this machine is too slow to call too fast";
}

TEST_F(HealthTest, OperatorsOpenMoreStreamsThanATenantMay) {
  constexpr size_t kMostOfATenant = 64;
  constexpr size_t kOfAConnection = 60;  // gRPC has a bound of its own
  std::vector<std::unique_ptr<PlainCall>> watches;
  while (watches.size() <= 2 * kMostOfATenant) {
    const auto channel = OpenChannel(SocketDir() + "/admin");
    for (size_t i = 0; i < kOfAConnection; ++i) {
      watches.push_back(
          std::make_unique<PlainCall>(channel, "/grpc.health.v1.Health/Watch"));
      ASSERT_EQ(watches.back()->Ask(""), kServing) << watches.size();
    }
  }
  EXPECT_EQ(Health(SocketDir() + "/admin"), kServing);
}

}  // namespace
}  // namespace gmb::component
