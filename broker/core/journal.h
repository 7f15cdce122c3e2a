#ifndef GMB_BROKER_CORE_JOURNAL_H_
#define GMB_BROKER_CORE_JOURNAL_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "broker/machine/lease_record.h"

namespace gmb::broker {

// Promises to clients: written after the keeper has acknowledged a
// lease's slabs and before any handle of it is sent. Called under the core's
// lock, so an implementation writes to memory only and never blocks.
class Journal {
 public:
  virtual ~Journal() = default;
  virtual void Granted(const LeaseRecord& record) = 0;
  virtual void Ended(uint64_t lease) = 0;
  [[nodiscard]] virtual std::vector<LeaseRecord> Records() const = 0;
};

// A journal that ends with the broker, as its memory does.
class InProcessJournal : public Journal {
 public:
  void Granted(const LeaseRecord& record) override {
    records_[record.lease] = record;
  }
  void Ended(uint64_t lease) override { records_.erase(lease); }
  std::vector<LeaseRecord> Records() const override {
    std::vector<LeaseRecord> all;
    all.reserve(records_.size());
    for (const auto& [lease, record] : records_) all.push_back(record);
    return all;
  }

 private:
  absl::flat_hash_map<uint64_t, LeaseRecord>
      records_;  // guarded by the core's lock
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_CORE_JOURNAL_H_
