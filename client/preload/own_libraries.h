#ifndef GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_
#define GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_

#include <cstddef>
#include <cstdint>

namespace gmb::preload {

// Those that are loaded while it lives are this library's own: they are to get
// the driver's functions. One in a process, before anything is leased.
class OwnLibraries {
 public:
  OwnLibraries();
  ~OwnLibraries();
  OwnLibraries(const OwnLibraries&) = delete;
  OwnLibraries& operator=(const OwnLibraries&) = delete;

  // Whether the library that was loaded there is one. Allocates nothing.
  [[nodiscard]] static bool Has(uint64_t address);

 private:
  const size_t before_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_OWN_LIBRARIES_H_
