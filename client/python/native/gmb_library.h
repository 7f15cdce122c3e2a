#ifndef GMB_CLIENT_PYTHON_NATIVE_GMB_LIBRARY_H_
#define GMB_CLIENT_PYTHON_NATIVE_GMB_LIBRARY_H_

#include "gmb/c_api.h"

namespace gmb::python {

#define GMB_TORCH_USES(F)     \
  F(gmb_acquire)              \
  F(gmb_acquire_options_init) \
  F(gmb_error_code)           \
  F(gmb_error_deficit_bytes)  \
  F(gmb_error_free)           \
  F(gmb_error_message)        \
  F(gmb_error_reason)         \
  F(gmb_error_retry_after_ms) \
  F(gmb_lease_data)           \
  F(gmb_lease_release_soon)   \
  F(gmb_lease_seal)           \
  F(gmb_lease_size_bytes)

// The functions of the client library that the Python package uses, of which a
// process may have several: under `gmb run` it is that one's. Handles of one are
// nothing to another, so it is not the loader that chooses.
struct GmbLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name takes none
#define GMB_TORCH_MEMBER(name) decltype(&::name) name = nullptr;
  GMB_TORCH_USES(GMB_TORCH_MEMBER)
#undef GMB_TORCH_MEMBER
};

// As gmb_torch_use_library has set it.
[[nodiscard]] const GmbLibrary& TheLibrary();

}  // namespace gmb::python

#endif  // GMB_CLIENT_PYTHON_NATIVE_GMB_LIBRARY_H_
