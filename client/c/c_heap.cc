// The heap's part of the C interface.
#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/status_macros.h"
#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/c/c_options.h"
#include "gmb/c_api.h"
#include "gmb/heap.h"

struct gmb_heap {
  std::unique_ptr<gmb::Heap> heap;
};

struct gmb_graph_pool {
  std::unique_ptr<gmb::GraphPool> pool;
};

namespace {

gmb_heap_stats ToC(const gmb::HeapStatistics& from) {
  return {.allocated_bytes = from.allocated_bytes,
          .peak_allocated_bytes = from.peak_allocated_bytes,
          .held_bytes = from.held_bytes,
          .leased_bytes = from.leased_bytes,
          .peak_leased_bytes = from.peak_leased_bytes,
          .empty_bytes = from.empty_bytes,
          .largest_free_bytes = from.largest_free_bytes,
          .blocks = from.blocks,
          .leases = from.leases,
          .allocations = from.allocations,
          .frees = from.frees,
          .growths = from.growths,
          .returned_leases = from.returned_leases,
          .out_of_memory = from.out_of_memory};
}

}  // namespace

using gmb::internal::CEdge;
using gmb::internal::FromC;
using gmb::internal::ToCError;

void gmb_heap_options_init(gmb_heap_options* options, size_t struct_size) {
  std::memset(options, 0, struct_size);
  options->struct_size = struct_size;
}

gmb_error* gmb_heap_create(gmb_client* client, const gmb_heap_options* options,
                           gmb_heap** heap) {
  *heap = nullptr;
  return CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(gmb::HeapOptions read, FromC(options));
    auto made = std::make_unique<gmb_heap>();
    GMB_ASSIGN_OR_RETURN(
        made->heap, gmb::Heap::Create(client->client.get(), std::move(read)));
    *heap = made.release();
    return absl::OkStatus();
  });
}

void gmb_heap_destroy(gmb_heap* heap) { delete heap; }

gmb_error* gmb_heap_allocate(gmb_heap* heap, uint64_t bytes, void* stream,
                             void** address) {
  *address = nullptr;
  const absl::StatusOr<void*> allocated = heap->heap->Allocate(bytes, stream);
  if (!allocated.ok()) return ToCError(allocated.status());
  *address = *allocated;
  return nullptr;
}

gmb_error* gmb_heap_free(gmb_heap* heap, void* address) {
  return ToCError(heap->heap->Free(address));
}

gmb_error* gmb_heap_free_on(gmb_heap* heap, void* address, void* stream) {
  return ToCError(heap->heap->Free(address, stream));
}

gmb_error* gmb_heap_record_stream(gmb_heap* heap, void* address, void* stream) {
  return ToCError(heap->heap->RecordStream(address, stream));
}

gmb_error* gmb_heap_detach_stream(gmb_heap* heap, void* stream) {
  return ToCError(heap->heap->DetachStream(stream));
}

gmb_error* gmb_heap_prepare(gmb_heap* heap, uint64_t bytes) {
  return ToCError(heap->heap->Prepare(bytes));
}

uint64_t gmb_heap_trim(gmb_heap* heap, uint64_t bytes) {
  return heap->heap->Trim(bytes);
}

void gmb_heap_statistics(const gmb_heap* heap, gmb_heap_stats* stats,
                         size_t element_size) {
  const gmb_heap_stats all = ToC(heap->heap->statistics());
  std::memset(stats, 0, element_size);
  std::memcpy(stats, &all, std::min(element_size, sizeof(all)));
}

gmb_error* gmb_heap_prepare_graphs(gmb_heap* heap, uint64_t bytes,
                                   gmb_graph_pool** pool) {
  *pool = nullptr;
  return CEdge([&]() -> absl::Status {
    auto made = std::make_unique<gmb_graph_pool>();
    GMB_ASSIGN_OR_RETURN(made->pool, heap->heap->PrepareGraphs(bytes));
    *pool = made.release();
    return absl::OkStatus();
  });
}

gmb_error* gmb_graph_pool_begin(gmb_graph_pool* pool, void* stream) {
  return ToCError(pool->pool->Begin(stream));
}

gmb_error* gmb_graph_pool_end(gmb_graph_pool* pool, void* stream) {
  return ToCError(pool->pool->End(stream));
}

void gmb_graph_pool_free(gmb_graph_pool* pool) { delete pool; }
