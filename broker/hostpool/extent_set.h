#ifndef GMB_BROKER_HOSTPOOL_EXTENT_SET_H_
#define GMB_BROKER_HOSTPOOL_EXTENT_SET_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "device/hostpool/host_extent.h"

namespace gmb::broker {

// The free part of the host pool. Any free bytes serve any request: what does
// not fit into one extent is made of several, as few as can be. A value; sizes
// in bytes, multiples of the pool's granularity. Costs a logarithm an extent.
class ExtentSet {
 public:
  explicit ExtentSet(uint64_t bytes);

  // Takes `bytes` (at most free_bytes()): the smallest extent that holds all of
  // it, of several such the first; else the largest, one after the other.
  [[nodiscard]] std::vector<device::HostExtent> Take(uint64_t bytes);
  // Takes exactly these, or nothing: false if they are not free.
  [[nodiscard]] bool TakeThese(const std::vector<device::HostExtent>& extents);
  // Gives back what Take gave.
  void Give(const std::vector<device::HostExtent>& extents);

  [[nodiscard]] uint64_t free_bytes() const { return free_bytes_; }
  // Extents that the free bytes lie in.
  [[nodiscard]] size_t num_extents() const { return by_offset_.size(); }

 private:
  using ByOffset = std::map<uint64_t, uint64_t>;  // offset -> bytes

  void Insert(uint64_t offset, uint64_t bytes);
  void Erase(ByOffset::iterator extent);
  device::HostExtent TakeFrom(uint64_t offset, uint64_t bytes);

  uint64_t free_bytes_ = 0;
  ByOffset by_offset_;
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_;  // {bytes, offset}
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_HOSTPOOL_EXTENT_SET_H_
