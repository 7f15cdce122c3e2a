// The heap as a resource of RMM, compiled against stand-ins of RMM's and CUDA's
// headers: what it asks of the runtime and of the heap. examples/rmm is the same
// against RMM itself.
#include "gmb/rmm_resource.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/client/client_fixture.h"

namespace {

struct Runtime {
  std::vector<cudaStream_t> synchronized;
  cudaError_t answer = cudaSuccess;
};
Runtime runtime;

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the runtime's name
extern "C" cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  runtime.synchronized.push_back(stream);
  return runtime.answer;
}

namespace gmb {
namespace {

class RmmResourceTest : public test::ClientTest {
 protected:
  RmmResourceTest() {
    runtime = Runtime();
    StartBroker();
    client_ = ConnectOrDie();
    HeapOptions options;
    options.least_growth_bytes = options.most_growth_bytes = 8 * kMiB;
    options.trim = false;
    heap_ = *Heap::Create(client_.get(), options);
  }

  std::unique_ptr<Client> client_;
  std::unique_ptr<Heap> heap_;
  int named_ = 0;
  int captured_ = 0;
  const cuda::stream_ref stream_{reinterpret_cast<cudaStream_t>(&named_)};
  const cuda::stream_ref per_thread_{cudaStreamPerThread};
  const cuda::stream_ref default_{nullptr};
};

TEST_F(RmmResourceTest, ABlockIsFreedInTheOrderOfItsStream) {
  RmmResource resource(heap_.get());
  void* const block = resource.allocate(stream_, kMiB);
  resource.deallocate(stream_, block, kMiB);
  EXPECT_EQ(heap_->statistics().blocks, 0U);
  EXPECT_TRUE(runtime.synchronized.empty());
}

// A vector may have been given that stream after it was made, and the stream that
// it was made for may be gone.
TEST_F(RmmResourceTest, TheStreamOfEachThreadIsWaitedFor) {
  RmmResource resource(heap_.get());
  void* const block = resource.allocate(stream_, 8 * kMiB);
  ASSERT_TRUE(heap_->DetachStream(stream_.get()).ok());
  resource.deallocate(per_thread_, block, 8 * kMiB);
  EXPECT_EQ(runtime.synchronized, std::vector{cudaStreamPerThread});
  EXPECT_EQ(heap_->statistics().blocks, 0U);
  // No events are asked in a capture: a stream that has freed nothing can have then
  // what is free for any.
  const std::unique_ptr<GraphPool> graphs = *heap_->PrepareGraphs(kMiB);
  ASSERT_TRUE(graphs->Begin(&captured_).ok());
  EXPECT_EQ(heap_->Allocate(8 * kMiB, stream_.get()).value_or(nullptr), block);
  EXPECT_TRUE(graphs->End(&captured_).ok());
}

TEST_F(RmmResourceTest, ABlockThatMayBeInUseIsKept) {
  RmmResource resource(heap_.get());
  void* const block = resource.allocate(stream_, kMiB);
  runtime.answer = cudaErrorLaunchFailure;
  resource.deallocate(per_thread_, block, kMiB);
  EXPECT_EQ(heap_->statistics().blocks, 1U);
}

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
TEST_F(RmmResourceTest, TheDefaultStreamIsEachThreadsOwn) {
  RmmResource resource(heap_.get());
  EXPECT_THROW(resource.allocate(default_, kMiB), rmm::bad_alloc);
  resource.deallocate(default_, resource.allocate(stream_, kMiB), kMiB);
  EXPECT_EQ(runtime.synchronized, std::vector{default_.get()});
  EXPECT_EQ(heap_->statistics().blocks, 0U);
}
#else
TEST_F(RmmResourceTest, TheDefaultStreamIsTheLegacyOne) {
  RmmResource resource(heap_.get());
  resource.deallocate(default_, resource.allocate(default_, kMiB), kMiB);
  EXPECT_TRUE(runtime.synchronized.empty());
  EXPECT_EQ(heap_->statistics().blocks, 0U);
}
#endif

TEST_F(RmmResourceTest, WithoutAStreamItIsTheLegacyOne) {
  RmmResource resource(heap_.get());
  resource.deallocate_sync(resource.allocate_sync(kMiB), kMiB);
  EXPECT_EQ(runtime.synchronized, std::vector{cudaStreamLegacy});
  EXPECT_EQ(heap_->statistics().blocks, 0U);
}

TEST_F(RmmResourceTest, ARefusalIsOutOfMemoryAndSaysWhy) {
  RmmResource resource(heap_.get());
  EXPECT_THROW(resource.allocate(stream_, std::size_t{1} << 50),
               rmm::out_of_memory);
  EXPECT_THROW(resource.allocate(stream_, kMiB, 1024), rmm::bad_alloc);
  EXPECT_THROW(resource.allocate(per_thread_, kMiB), rmm::bad_alloc);
}

}  // namespace
}  // namespace gmb
