#ifndef GMB_CLIENT_PRELOAD_BROKER_LIBRARY_H_
#define GMB_CLIENT_PRELOAD_BROKER_LIBRARY_H_

#include "client/gate/bias_calls.h"
#include "client/lease/range_hooks.h"
#include "gmb/c_api.h"

namespace gmb::preload {

// The functions of libgmb.so that are used here.
#define GMB_LIBRARY_FUNCTIONS(F)   \
  F(gmb_client_options_init)       \
  F(gmb_internal_acquire_unmapped) \
  F(gmb_internal_ask_ahead)        \
  F(gmb_internal_forget_ahead)     \
  F(gmb_internal_attach_exported)  \
  F(gmb_internal_automatic_gate)   \
  F(gmb_internal_export)           \
  F(gmb_internal_join)             \
  F(gmb_internal_release_idle)     \
  F(gmb_client_connect)            \
  F(gmb_client_close)              \
  F(gmb_client_status)             \
  F(gmb_client_tenant)             \
  F(gmb_client_devices)            \
  F(gmb_client_quota)              \
  F(gmb_acquire_options_init)      \
  F(gmb_acquire)                   \
  F(gmb_lease_data)                \
  F(gmb_lease_size_bytes)          \
  F(gmb_lease_release_soon)        \
  F(gmb_set_trimmable)             \
  F(gmb_error_code)                \
  F(gmb_error_reason)              \
  F(gmb_error_message)             \
  F(gmb_error_free)

struct BrokerLibrary {
// NOLINTNEXTLINE(bugprone-macro-parentheses): a declared name takes none
#define GMB_LIBRARY_MEMBER(name) decltype(&::name) name = nullptr;
  GMB_LIBRARY_FUNCTIONS(GMB_LIBRARY_MEMBER)
#undef GMB_LIBRARY_MEMBER

  // Loaded when first asked for, never unloaded. Null, which is said, when it
  // is not beside this library and nowhere else.
  [[nodiscard]] static const BrokerLibrary* Get();
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_BROKER_LIBRARY_H_
