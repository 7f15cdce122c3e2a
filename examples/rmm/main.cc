// A vector of RMM in memory that a broker leased:
//   rmm_example SOCKET_DIR
#include <cstddef>
#include <cstdio>
#include <cuda/stream_ref>
#include <memory>
#include <rmm/cuda_stream.hpp>
#include <rmm/device_uvector.hpp>
#include <rmm/error.hpp>
#include <rmm/mr/per_device_resource.hpp>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "gmb/heap.h"
#include "gmb/rmm_resource.h"

int main(int argc, char** argv) {
  gmb::ClientOptions options;
  if (argc > 1) options.socket_dir = argv[1];
  auto client = gmb::Client::Connect(std::move(options));
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 1;
  }
  auto heap = gmb::Heap::Create(client->get());
  if (!heap.ok()) {
    std::fprintf(stderr, "%s\n", heap.status().ToString().c_str());
    return 1;
  }
  rmm::mr::set_current_device_resource(gmb::RmmResource(heap->get()));
  {
    const rmm::cuda_stream stream;
    const std::vector<int> numbers(1 << 20, 42);
    const cuda::stream_ref on = stream;
    rmm::device_uvector<int> vector(numbers.size(), on);
    cudaMemcpyAsync(vector.data(), numbers.data(), numbers.size() * sizeof(int),
                    cudaMemcpyHostToDevice, stream.value());
    std::printf("the last is %d\n", vector.back_element(on));
    std::printf("leased: %lu bytes, allocated: %lu\n",
                (*heap)->statistics().leased_bytes,
                (*heap)->statistics().allocated_bytes);
    try {
      const rmm::device_uvector<char> too_much(std::size_t{1} << 50, on);
    } catch (const rmm::out_of_memory& refusal) {
      std::printf("refused, as it should be: %s\n", refusal.what());
    }
    // The heap cannot name the stream of each thread: the free waits for it.
    rmm::device_uvector<int> moved(numbers.size(), on);
    moved.set_stream(rmm::cuda_stream_per_thread);
    moved.release();
    // The vector goes first, and what it freed is done with before the stream.
    vector.release();
    std::printf("blocks: %lu\n", (*heap)->statistics().blocks);
    if (absl::Status detached = (*heap)->DetachStream(stream.value());
        !detached.ok()) {
      std::fprintf(stderr, "%s\n", detached.ToString().c_str());
    }
  }
  rmm::mr::reset_current_device_resource();
  return 0;
}
