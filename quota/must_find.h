// Look-ups that our own books promise: a key that is not there is a defect of
// gmbd, and the message that ends the process says which.
#ifndef GMB_QUOTA_MUST_FIND_H_
#define GMB_QUOTA_MUST_FIND_H_

#include <cstdint>

namespace gmb::quota {

// Prints what the books name and do not have, and where that was noticed; aborts.
[[noreturn]] void EndForBrokenBooks(const char* what, uint64_t id,
                                    const char* file, int line);

// The value of `key`, whose type has a number `value`. `what` is the word for
// one entry, as in "the books name a lease that is not there".
template <typename Map>
[[nodiscard]] auto& MustFind(Map& map, const typename Map::key_type& key,
                             const char* what,
                             const char* file = __builtin_FILE(),
                             int line = __builtin_LINE()) {
  const auto it = map.find(key);
  if (it == map.end()) EndForBrokenBooks(what, key.value, file, line);
  return it->second;
}

}  // namespace gmb::quota

#endif  // GMB_QUOTA_MUST_FIND_H_
