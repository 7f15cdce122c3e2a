#ifndef GMB_BROKER_MACHINE_PACED_CREATES_H_
#define GMB_BROKER_MACHINE_PACED_CREATES_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>

#include "broker/machine/device_job.h"

namespace gmb::broker {

// Creates for leases that come back with contents: how far the device may be
// ahead of the copier that fills them. The driver serves one caller at a time,
// and the creates of many leases in a row would keep the copier from mapping
// the first of them.
//
// They leave in the order in which they came, and wait only for those that left
// before them: a lease whose slabs are all there does not count. A value without a device: the
// pool keeper says when a lease begins to be made or filled, and when it is
// full.
class PacedCreates {
 public:
  // Two leases at least, so that one is made while another is filled.
  static constexpr size_t kFewestLeases = 2;

  void Hold(PrepareJob job) { held_.push_back(std::move(job)); }
  [[nodiscard]] bool holds_any() const { return !held_.empty(); }
  // The first that is held; there is one.
  [[nodiscard]] const PrepareJob& first() const { return held_.front(); }
  // Whether it may be given to the device now.
  [[nodiscard]] bool IsDue(uint64_t ahead_bytes) const {
    return filling_leases_ < kFewestLeases || filling_bytes_ < ahead_bytes;
  }
  [[nodiscard]] PrepareJob TakeFirst() {
    PrepareJob job = std::move(held_.front());
    held_.pop_front();
    return job;
  }

  void BeginFilling(uint64_t bytes) {
    ++filling_leases_;
    filling_bytes_ += bytes;
  }
  void EndFilling(uint64_t bytes) {
    --filling_leases_;
    filling_bytes_ -= bytes;
  }
  [[nodiscard]] size_t filling_leases() const { return filling_leases_; }
  [[nodiscard]] uint64_t filling_bytes() const { return filling_bytes_; }

 private:
  std::deque<PrepareJob> held_;
  // Leases that are being made, or have been and wait to be filled, or are.
  size_t filling_leases_ = 0;
  uint64_t filling_bytes_ = 0;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_PACED_CREATES_H_
