// A device's thread: takes its jobs in their order, and tells what became of
// each.
#include "broker/core/device_worker.h"

#include <utility>

namespace gmb::broker {

absl::StatusOr<std::unique_ptr<DeviceWorker>> DeviceWorker::Create(
    std::unique_ptr<device::Allocator> allocator, Keeper* keeper,
    std::atomic<SlabId>* slab_ids, absl::Span<const SlabRecord> kept,
    uint64_t known_baseline) {
  absl::StatusOr<std::unique_ptr<DeviceTasks>> tasks = DeviceTasks::Create(
      std::move(allocator), keeper, slab_ids, kept, known_baseline);
  if (!tasks.ok()) return tasks.status();
  return std::unique_ptr<DeviceWorker>(new DeviceWorker(*std::move(tasks)));
}

DeviceWorker::~DeviceWorker() { Stop(); }

void DeviceWorker::Start(Done done) {
  done_ = std::move(done);
  thread_ = std::thread([this] { Run(); });
}

void DeviceWorker::Stop() {
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    wake_.NotifyAll();
  }
  if (thread_.joinable()) thread_.join();
}

void DeviceWorker::Push(DeviceJob job) {
  base::MutexLock lock(&mu_);
  jobs_.push_back(std::move(job));
}

void DeviceWorker::Wake() { wake_.NotifyOne(); }

void DeviceWorker::Run() {
  while (true) {
    DeviceJob job;
    {
      base::MutexLock lock(&mu_);
      while (jobs_.empty() && !stopping_) wake_.Wait(&mu_);
      if (stopping_) return;
      job = std::move(jobs_.front());
      jobs_.pop_front();
    }
    done_(tasks_->Do(std::move(job)));
  }
}

}  // namespace gmb::broker
