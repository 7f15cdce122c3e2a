#ifndef GMB_CLIENT_PRELOAD_TRIPWIRE_H_
#define GMB_CLIENT_PRELOAD_TRIPWIRE_H_

#include <atomic>
#include <cstddef>
#include <string>

namespace gmb::preload {

// The stub that goes before a function of the driver that gmb does not know,
// which may touch memory that is away. At its first call the memory comes back,
// the process is parked never again, and the reason names the function. That it
// is looked up says nothing: the CUDA runtime looks all functions up. No code
// is made for it: there are so many stubs, each with one of these.
//
// Thread-safe. The stubs are written for this layout.
struct alignas(32) Tripwire {
  std::atomic<void*> real{nullptr};              // null: the stub is free
  std::atomic<const std::string*> why{nullptr};  // for people, kept
  std::atomic<unsigned> tripped{0};  // the stub jumps to the real function
  // Of a newer form of one that takes a handle of memory, what it is a form of.
  // Each of its calls is looked at: the driver crashes on a name of ours.
  std::atomic<const char*> takes_handle{nullptr};
};

inline constexpr size_t kTripwires = 256;

// The stub for `real`, the same each time. `name` is that under which it was
// found. When there is no stub left it is `real`, and the process never parks.
[[nodiscard]] void* BehindTripwire(const char* name, void* real);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_TRIPWIRE_H_
