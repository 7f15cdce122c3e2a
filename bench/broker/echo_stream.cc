// gRPC's own cost: streams of empty messages, each answered at once.
#include "bench/broker/echo_stream.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "bench/broker/rate.h"
#include "bench/cpu_seconds.h"
#include "gmb/v1/session.grpc.pb.h"
#include "grpcpp/grpcpp.h"

namespace gmb::bench {
namespace {

using Reactor = grpc::ServerBidiReactor<v1::ClientMessage, v1::BrokerMessage>;

class Echo : public Reactor {
 public:
  Echo() { StartRead(&request_); }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartWrite(&answer_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartRead(&request_);
  }
  void OnDone() override { delete this; }

 private:
  v1::ClientMessage request_;
  const v1::BrokerMessage answer_;
};

class EchoService : public v1::SessionService::CallbackService {
 public:
  Reactor* Session(grpc::CallbackServerContext* /*context*/) override {
    return new Echo;
  }
};

class ServerProcess {
 public:
  // gRPC does not live on in a forked child, so the child starts this program
  // anew.
  explicit ServerProcess(const std::string& path) : pid_(::fork()) {
    if (pid_ != 0) return;
    ::execl("/proc/self/exe", "pair_bench", kServeFlag, path.c_str(), nullptr);
    ::_exit(127);
  }
  ~ServerProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  [[nodiscard]] double Cpu() const { return CpuSeconds(std::to_string(pid_)); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

 private:
  const pid_t pid_;
};

}  // namespace

void ServeEchoes(const std::string& path) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  EchoService service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("unix:" + path, grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server != nullptr) server->Wait();
  ::_exit(1);
}

absl::StatusOr<Echoes> MeasureEchoes(const std::string& path, uint32_t streams,
                                     double seconds) {
  const ServerProcess server(path);
  const double before = CpuSeconds("self") + server.Cpu();
  std::atomic<uint64_t> echoes = 0;
  std::atomic<uint32_t> failed = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < streams; ++i) {
    threads.emplace_back([&] {
      grpc::ChannelArguments arguments;
      arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 50);
      arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
      const auto stub = v1::SessionService::NewStub(grpc::CreateCustomChannel(
          "unix:" + path, grpc::InsecureChannelCredentials(), arguments));
      grpc::ClientContext context;
      context.set_wait_for_ready(true);
      const auto stream = stub->Session(&context);
      v1::BrokerMessage answer;
      while (!stop) {
        if (!stream->Write(v1::ClientMessage()) || !stream->Read(&answer)) {
          ++failed;
          break;
        }
        ++echoes;
      }
      context.TryCancel();
      (void)stream->Finish();
    });
  }
  while (echoes < streams && failed == 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const double rate = RateOf(echoes, seconds);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  if (failed > 0) return absl::InternalError("an empty stream broke");
  const double used = CpuSeconds("self") + server.Cpu() - before;
  return Echoes{rate, used * 1e6 / (rate * seconds)};
}

}  // namespace gmb::bench
