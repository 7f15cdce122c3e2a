#ifndef GMB_KEEPER_SHELF_H_
#define GMB_KEEPER_SHELF_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "keeper/wire/messages.h"

namespace gmb::keeper {

struct KeptEntry {
  EntryHead head;
  std::vector<base::UniqueFd> fds;
};

// All that a keeper keeps, in the order in which it came. An entry that is
// taken off the shelf is the caller's to close, which may take long. Not
// thread-safe.
class Shelf {
 public:
  struct Limits {
    size_t entries = 0;
    size_t fds = 0;
  };
  explicit Shelf(const Limits& limits) : limits_(limits) {}

  // Whether Add may take it, while so many that were taken off are still open.
  // ALREADY_EXISTS, RESOURCE_EXHAUSTED; INVALID_ARGUMENT where the number of fds
  // is another.
  [[nodiscard]] absl::Status Check(const EntryHead& head, size_t fds,
                                   size_t closing = 0) const;
  // It was checked. Gives it the next order.
  const KeptEntry& Add(KeptEntry entry);
  // Those of another shelf, which has given out orders up to `last_order`. This
  // one is empty, and they fit.
  void Inherit(std::vector<KeptEntry> entries, uint64_t last_order);
  // Nothing: it is not there.
  [[nodiscard]] std::optional<KeptEntry> Take(absl::string_view key);
  [[nodiscard]] std::vector<KeptEntry> TakeAll();

  // The next ones with a higher order, as many as a page carries; and whether
  // there are more behind them.
  struct Next {
    std::vector<const KeptEntry*> entries;
    bool more = false;
  };
  [[nodiscard]] Next After(uint64_t order) const;

  // The last one that was put of those whose names begin so; null: none.
  [[nodiscard]] const KeptEntry* Newest(absl::string_view prefix) const;

  [[nodiscard]] const std::map<uint64_t, KeptEntry>& all() const {
    return by_order_;
  }
  [[nodiscard]] uint64_t last_order() const { return last_order_; }
  [[nodiscard]] size_t entries() const { return by_order_.size(); }
  [[nodiscard]] size_t fds() const { return fds_; }
  [[nodiscard]] const Limits& limits() const { return limits_; }

 private:
  const Limits limits_;
  std::map<uint64_t, KeptEntry> by_order_;
  absl::flat_hash_map<std::string, uint64_t> by_key_;
  size_t fds_ = 0;
  uint64_t last_order_ = 0;
};

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_SHELF_H_
