#ifndef GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_
#define GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_

#include <cstdint>
#include <vector>

namespace gmb::preload {

// The client library and all that it needs: they are to get the driver's
// functions. Libraries that another thread loads meanwhile are not.
class OwnLibraries {
 public:
  OwnLibraries() = default;
  OwnLibraries(const OwnLibraries&) = delete;
  OwnLibraries& operator=(const OwnLibraries&) = delete;

  // One that dlopen gave, and that stays open, with those that it needs.
  void Add(void* library);
  // From now on Has answers. Once in a process, before anything is leased.
  void Publish();

  // Whether the library that was loaded there is one. Allocates nothing.
  [[nodiscard]] static bool Has(uint64_t address);

 private:
  std::vector<uint64_t> addresses_;  // sorted
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_
