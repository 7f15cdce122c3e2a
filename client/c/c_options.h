#ifndef GMB_CLIENT_C_C_OPTIONS_H_
#define GMB_CLIENT_C_C_OPTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmb/c_api.h"
#include "gmb/heap.h"
#include "gmb/options.h"

struct gmb_canceller {
  std::stop_source source;
};

namespace gmb::internal {

// The caller's options, as this library knows them; what the caller's header
// did not have is zero. `first_size` is the struct's size in version 0.1.
// INVALID_ARGUMENT when struct_size is smaller, or a field is set that this
// library does not know.
template <typename Options>
absl::StatusOr<Options> ReadOptions(const Options* given, size_t first_size) {
  constexpr size_t kMostBytes = 4096;
  Options options{};
  if (given == nullptr) return options;
  const size_t size = given->struct_size;
  if (size < first_size || size > kMostBytes) {
    return absl::InvalidArgumentError(
        "gmb: struct_size of the options is wrong: call their _init first");
  }
  const auto* const bytes = reinterpret_cast<const char*>(given);
  if (size > sizeof(Options) &&
      std::any_of(bytes + sizeof(Options), bytes + size,
                  [](char byte) { return byte != 0; })) {
    return absl::InvalidArgumentError(
        "gmb: the options have a field set that this library is too old for; "
        "update libgmb");
  }
  std::memcpy(&options, given, std::min(size, sizeof(Options)));
  return options;
}

// GMB_WAIT_NONE: not at all. Otherwise below 0 (GMB_WAIT_LONGEST): as long as
// may be.
[[nodiscard]] absl::Duration WaitFromC(int64_t wait_ms);
[[nodiscard]] absl::StatusOr<ClientOptions> FromC(
    const gmb_client_options* given);
[[nodiscard]] absl::StatusOr<AcquireOptions> FromC(
    const gmb_acquire_options* given);
[[nodiscard]] absl::StatusOr<AttachOptions> FromC(
    const gmb_attach_options* given);
[[nodiscard]] absl::StatusOr<HeapOptions> FromC(const gmb_heap_options* given);
[[nodiscard]] gmb_quota ToC(const QuotaView& quota);
[[nodiscard]] gmb_device ToC(const Device& device);

// Copies `from` to the caller's array of elements of another version's size.
template <typename Element>
absl::Status CopyOut(const std::vector<Element>& from, Element* to,
                     size_t element_size, size_t capacity, size_t* count) {
  if (element_size == 0 && capacity > 0) {
    return absl::InvalidArgumentError(
        "gmb: element_size is 0: pass sizeof of the struct");
  }
  for (size_t i = 0; i < std::min(from.size(), capacity); ++i) {
    char* const at = reinterpret_cast<char*>(to) + i * element_size;
    std::memset(at, 0, element_size);
    std::memcpy(at, &from[i], std::min(element_size, sizeof(Element)));
  }
  *count = from.size();
  return absl::OkStatus();
}

}  // namespace gmb::internal

#endif  // GMB_CLIENT_C_C_OPTIONS_H_
