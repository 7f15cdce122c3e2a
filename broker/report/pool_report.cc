// A device pool, and the host pool, as operators see them.
#include "broker/report/pool_report.h"

#include "broker/machine/wire_form.h"
#include "device/hostpool/pool_mapping.h"

namespace gmb::broker::report {

v1::PoolStatus OfPool(const State& state, const Pool& pool) {
  const quota::PoolView view = *state.engine->Pool(pool.id);
  const Composition parts = pool.slabs->composition();
  v1::PoolStatus status;
  *status.mutable_device() = ToProto(pool.info);
  status.set_target_bytes(view.target_bytes);
  status.set_capacity_bytes(parts.capacity_bytes);
  status.set_granted_bytes(parts.granted_bytes);
  status.set_returned_bytes(parts.returned_bytes);
  status.set_ready_bytes(parts.ready_bytes);
  status.set_float_bytes(parts.float_bytes);
  status.set_scrubbing_bytes(parts.scrubbing_bytes);
  status.set_unreturned_bytes(parts.unreturned_bytes);
  status.set_missing_bytes(parts.missing_bytes);
  status.set_outside_bytes(pool.device->reading.outside_bytes);
  status.set_headroom_bytes(pool.headroom_bytes());
  status.set_headroom_left_bytes(pool.headroom_left_bytes());
  status.set_guaranteed_bytes(view.guaranteed_bytes);
  status.set_slabs(parts.slabs);
  status.set_ready_slab_bytes(pool.slabs->options().ready_slab_bytes);
  const PutOffs::Sum put_off = state.put_off->SumOf(pool.id);
  status.set_waiting(view.waiting + put_off.requests);
  status.set_waiting_bytes(view.waiting_bytes + put_off.bytes);
  status.set_draining(view.draining);
  status.set_problem(pool.device->problem);
  status.set_unreturned_outside_bytes(
      pool.device->reading.unreturned_outside_bytes);
  return status;
}

v1::HostPoolStatus OfHostPool(const State& state,
                              const device::HostPool* host_pool) {
  v1::HostPoolStatus status;
  if (host_pool == nullptr) return status;
  const device::HostPool::Progress progress = host_pool->progress();
  status.set_bytes(progress.bytes);
  status.set_prepared_bytes(progress.prepared_bytes);
  status.set_locked_bytes(progress.locked_bytes);
  status.set_failed_bytes(progress.failed_bytes);
  status.set_done(progress.done);
  status.set_on_demand(host_pool->on_demand());
  status.set_problem(progress.problem);
  status.set_pages(device::PageKindName(host_pool->page_kind()));
  const HostBooks::Amounts& books = state.host_books->total();
  status.set_reserved_bytes(books.reserved_bytes);
  status.set_placed_bytes(books.placed_bytes);
  status.set_held_bytes(books.true_bytes);
  return status;
}

}  // namespace gmb::broker::report
