#ifndef GMB_BROKER_USAGE_USAGE_STORE_H_
#define GMB_BROKER_USAGE_USAGE_STORE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "broker/store/database.h"
#include "broker/usage/usage_days.h"

namespace gmb::broker {

// Usage on the disk, in DIR/usage.db (mode 0600): a file of its own, since its
// loss costs nobody a limit. Slow, and not thread-safe; errors are Database's.
class UsageStore {
 public:
  // So many of the newest days that have rows are kept, and no more rows than
  // so many, but for the newest day's.
  struct Kept {
    int64_t days = 400;
    int64_t rows = 200'000;
  };

  // A damaged file is set aside, as usage.db.corrupt-<time>, and a new one is
  // begun; `aside` is then its path.
  static absl::StatusOr<std::unique_ptr<UsageStore>> Open(
      const std::string& directory, absl::Time now, std::string* aside);
  static absl::StatusOr<std::unique_ptr<UsageStore>> Open(
      const std::string& directory, absl::Time now, std::string* aside,
      const Kept& kept);

  // All of it or nothing, added to what is there.
  absl::Status Add(const UsageRows& rows);
  // At most so many, in the order of their keys, after that key.
  absl::StatusOr<std::vector<std::pair<UsageKey, Usage>>> List(
      int64_t since_day, const std::string& tenant,
      const std::optional<UsageKey>& after, size_t most);

 private:
  UsageStore(Database database, const Kept& kept)
      : database_(std::move(database)), kept_(kept) {}

  absl::Status Prune();

  Database database_;
  const Kept kept_;
  std::optional<int64_t> pruned_day_;  // when there last were too many
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_USAGE_USAGE_STORE_H_
