// A libnccl.so.2 that says how often it was asked for a communicator.
#include <cstddef>
#include <cstdio>

struct UniqueId {
  char bytes[128];
};

extern "C" __attribute__((visibility("default"))) int ncclCommInitRank(
    void** communicator, int ranks, UniqueId id, int rank) {
  std::printf("communicator %d %d %d\n", ranks, id.bytes[127], rank);
  *communicator = nullptr;
  return 0;
}

// Buffers of its own: `create` is cuMemCreate.
extern "C" __attribute__((visibility("default"))) int fakeNcclCreate(
    int (*create)(unsigned long long*, size_t, const void*, unsigned long long),
    unsigned long long* handle, size_t bytes, const void* properties) {
  const int result = create(handle, bytes, properties, 0);
  asm volatile("" ::: "memory");  // the call returns here
  return result;
}
