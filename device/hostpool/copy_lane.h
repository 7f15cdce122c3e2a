#ifndef GMB_DEVICE_HOSTPOOL_COPY_LANE_H_
#define GMB_DEVICE_HOSTPOOL_COPY_LANE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "base/mutex.h"
#include "device/copy_engine.h"
#include "device/copy_job.h"
#include "device/hostpool/host_pool.h"

namespace gmb::device {

// One direction of a copier: a thread that works jobs off in order, and ends
// them in that order. While pieces of one slab are in flight it maps the next
// slab and begins its copies, and unmaps and reports the one before.
class CopyLane {
 public:
  CopyLane(HostPool* pool, std::unique_ptr<CopyEngine> engine,
           const CopyPacing& pacing);
  CopyLane(const CopyLane&) = delete;
  CopyLane& operator=(const CopyLane&) = delete;
  // Stops, and answers also what was pushed after that.
  ~CopyLane();

  // Ends all jobs, those not done with CANCELLED, and the thread.
  void Stop();
  void Push(CopyJob job);
  void Wake() { wake_.NotifyOne(); }
  void Cancel(uint64_t group);

 private:
  struct Task {
    CopyJob job;
    std::atomic<bool> cancelled{false};
    // Of the lane's thread:
    absl::Status status;
    char* mapped = nullptr;
    uint64_t begun_bytes = 0;
    size_t extent = 0;           // the next piece is in this one,
    uint64_t extent_offset = 0;  // so far from its start
  };
  // A copy in flight, or (0 bytes) the mere end of a task.
  struct Piece {
    Task* task;
    uint64_t bytes;
    bool last;
  };

  void Run();
  // The next task, which becomes active; waits for one if told to. Null: none
  // (and, having waited, none will come).
  Task* NextTask(bool wait);
  // Begins the next piece of a task; false when it was the last one.
  bool BeginPiece(Task* task);
  absl::Status BeginCopy(Task* task, uint64_t* bytes);
  void RetireOldest();
  void End(Task* task);

  HostPool* const pool_;
  const std::unique_ptr<CopyEngine> engine_;
  const CopyPacing pacing_;

  // Of the lane's thread:
  std::deque<Piece> flight_;
  uint64_t flight_bytes_ = 0;

  base::Mutex mu_;
  base::CondVar wake_;
  std::deque<std::unique_ptr<Task>> waiting_ ABSL_GUARDED_BY(mu_);
  // Begun and not ended, in order.
  std::deque<std::unique_ptr<Task>> active_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;

  std::thread thread_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_COPY_LANE_H_
