#ifndef GMB_BENCH_DEVICE_DESTROYER_H_
#define GMB_BENCH_DEVICE_DESTROYER_H_

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "device/allocator.h"

namespace gmb::bench {

// The device worker's part: destroys what the copier is done with, on a thread
// of its own.
class Destroyer {
 public:
  explicit Destroyer(device::Allocator* allocator)
      : allocator_(allocator), thread_([this] { Run(); }) {}
  ~Destroyer() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  void Push(device::SlabKey key, absl::Status copied) {
    const std::lock_guard<std::mutex> lock(mutex_);
    status_.Update(std::move(copied));
    keys_.push_back(key);
    changed_.notify_all();
  }
  // For so many since the last time; the first error of them.
  absl::Status WaitFor(size_t slabs) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return destroyed_ >= slabs; });
    destroyed_ = 0;
    return std::exchange(status_, absl::OkStatus());
  }

 private:
  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return stopping_ || !keys_.empty(); });
      if (keys_.empty()) return;
      const device::SlabKey key = keys_.front();
      keys_.pop_front();
      lock.unlock();
      absl::Status status = allocator_->Destroy(key);
      lock.lock();
      status_.Update(std::move(status));
      ++destroyed_;
      changed_.notify_all();
    }
  }

  device::Allocator* const allocator_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<device::SlabKey> keys_;
  size_t destroyed_ = 0;
  bool stopping_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_DEVICE_DESTROYER_H_
