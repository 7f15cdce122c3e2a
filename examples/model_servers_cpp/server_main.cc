// A model behind HTTP, in memory that a broker leased:
//   model_server --model writer --socket-dir DIR/tenants/writer
// Prints "listening on 127.0.0.1:PORT" once it serves. SIGTERM or SIGINT: it
// finishes what it has begun and ends with 0.
#include <pthread.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <thread>

#include "CLI/CLI.hpp"
#include "absl/status/status.h"
#include "engine.h"
#include "http_service.h"

namespace {

int Fail(const absl::Status& status) {
  std::fprintf(stderr, "model_server: %s\n",
               std::string(status.message()).c_str());
  return 1;
}

// To be called before there is any other thread, which all take it over.
sigset_t BlockStopSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

int Serve(const model_servers::EngineOptions& options, int port,
          const sigset_t& stop_signals) {
  const auto engine = model_servers::Engine::Start(options);
  if (!engine.ok()) return Fail(engine.status());
  model_servers::HttpService service(engine->get());
  const auto bound = service.Bind(port);
  if (!bound.ok()) return Fail(bound.status());
  std::printf("listening on 127.0.0.1:%d\n", *bound);
  std::fflush(stdout);
  std::thread stopper([&] {
    int signal = 0;
    sigwait(&stop_signals, &signal);
    service.Stop();
  });
  const absl::Status served = service.Serve();
  if (!served.ok()) kill(getpid(), SIGTERM);  // for the stopper
  stopper.join();
  return served.ok() ? 0 : Fail(served);
}

}  // namespace

int main(int argc, char** argv) try {
  const sigset_t stop_signals = BlockStopSignals();
  model_servers::EngineOptions options;
  int port = 0;
  double wait_seconds = 10;
  CLI::App app("A model behind HTTP, in memory that a gmb broker leased.");
  app.add_option("--model", options.model, "classifier, writer or search")
      ->required();
  app.add_option("--socket-dir", options.socket_dir,
                 "The tenant's directory of the broker's sockets "
                 "[$GMB_SOCKET_DIR, or /run/gmb]");
  app.add_option("--port", port, "Of 127.0.0.1; 0: any [0]")
      ->check(CLI::Range(0, 65535));
  options.unit_bytes = uint64_t{256} << 10;
  app.add_option("--unit-bytes", options.unit_bytes,
                 "What all sizes of the model are multiples of [256 KiB]");
  app.add_option("--wait", wait_seconds,
                 "How many seconds a request waits for memory [10]")
      ->check(CLI::Range(0.0, 3600.0));
  CLI11_PARSE(app, argc, argv);
  options.wait = absl::Seconds(wait_seconds);
  return Serve(options, port, stop_signals);
} catch (const std::exception& error) {  // of the libraries
  std::fprintf(stderr, "model_server: %s\n", error.what());
  return 1;
}
