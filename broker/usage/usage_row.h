#ifndef GMB_BROKER_USAGE_USAGE_ROW_H_
#define GMB_BROKER_USAGE_USAGE_ROW_H_

#include <cstdint>
#include <string>

namespace gmb::broker {

// The subject of one row: a tenant on a device, one day of UTC.
struct UsageKey {
  int64_t day = 0;  // since 1970-01-01
  std::string tenant;
  std::string device;  // its UUID

  // The newest day first.
  friend bool operator<(const UsageKey& a, const UsageKey& b) {
    if (a.day != b.day) return a.day > b.day;
    if (a.tenant != b.tenant) return a.tenant < b.tenant;
    return a.device < b.device;
  }
  friend bool operator==(const UsageKey&, const UsageKey&) = default;
};

// The use that one row tells. Bytes are of leases; those that are evicted are
// not on the device, and are not in `peak_bytes` and `byte_seconds`.
struct Usage {
  uint64_t peak_bytes = 0;  // the most at once
  double byte_seconds = 0;
  uint64_t granted = 0;
  uint64_t refused = 0;
  uint64_t evictions = 0;
  uint64_t evicted_bytes = 0;
  uint64_t restores = 0;
  uint64_t restored_bytes = 0;

  // Of the same key, later.
  void Add(const Usage& more);
  [[nodiscard]] bool empty() const { return *this == Usage(); }
  friend bool operator==(const Usage&, const Usage&) = default;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_USAGE_USAGE_ROW_H_
