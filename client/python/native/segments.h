#ifndef GMB_CLIENT_PYTHON_NATIVE_SEGMENTS_H_
#define GMB_CLIENT_PYTHON_NATIVE_SEGMENTS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "client/python/native/gmb_torch.h"

namespace gmb::python {

// Ends a lease without a wait for the broker's answer: torch frees many at
// once, and could not act on an error.
void ReleaseLease(gmb_lease* lease);

// The leases that torch has as segments, by address. Thread-safe.
class Segments {
 public:
  void Add(gmb_lease* lease, int32_t device, uint64_t group,
           bool sealed = false);

  // Forgets the segment at the address. Null when there is none, or when a
  // capture is under way: the lease is then kept for EndCapture.
  [[nodiscard]] gmb_lease* Take(const void* address);

  [[nodiscard]] std::optional<gmb_torch_segment> Find(const void* address);
  [[nodiscard]] gmb_error* Seal(uint64_t group);

  void BeginCapture();
  // The leases that can be released now: all that were kept, after the last
  // capture.
  [[nodiscard]] std::vector<gmb_lease*> EndCapture();
  [[nodiscard]] bool capturing();

  // All but `waiting` and `trims`.
  [[nodiscard]] gmb_torch_totals totals();

 private:
  struct Segment {
    gmb_lease* lease;
    gmb_torch_segment view;
  };

  std::mutex mu_;  // guards all below
  std::map<uint64_t, Segment> by_address_;
  std::vector<gmb_lease*> kept_;  // freed during a capture
  uint64_t captures_ = 0;
  uint64_t bytes_ = 0;
  uint64_t changes_ = 0;
};

}  // namespace gmb::python

#endif  // GMB_CLIENT_PYTHON_NATIVE_SEGMENTS_H_
