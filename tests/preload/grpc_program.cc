// A program that has a gRPC of its own: it serves and calls, and takes device
// memory in between.
#include <dlfcn.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace {

// As the CUDA runtime finds the driver.
template <typename Function>
Function Find(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW);
  return reinterpret_cast<Function>(dlsym(driver, name));
}

int Allocate() {
  Find<int (*)(unsigned)>("cuInit")(0);
  void* context = nullptr;
  Find<int (*)(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0);
  Find<int (*)(void*)>("cuCtxPushCurrent_v2")(context);
  uint64_t at = 0;
  return Find<int (*)(uint64_t*, size_t)>("cuMemAlloc_v2")(&at, 4 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const std::string address = std::string("unix:") + argv[1];
  grpc::CallbackGenericService service;  // that knows no method
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(&service);
  builder.AddListeningPort(address, grpc::InsecureServerCredentials());
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  for (int turn = 0; turn < 2; ++turn) {
    const auto channel =
        grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
    const bool connected = channel->WaitForConnected(
        std::chrono::system_clock::now() + std::chrono::seconds(20));
    std::printf("grpc %d alloc %d\n", connected ? 1 : 0, Allocate());
    std::fflush(stdout);
  }
  if (server == nullptr) return 1;
  server->Shutdown();
  return 0;
}
