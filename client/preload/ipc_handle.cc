// `gmb run`: the 64 bytes that a program gives to another process.
#include "client/preload/ipc_handle.h"

#include <array>
#include <cstring>

namespace gmb::preload {
namespace {

// How ours begin, with the version of what follows; the driver's do not.
constexpr std::array<char, 8> kMagic = {'g', 'm', 'b', '-', 'i', 'p', 'c', 1};

struct Layout {
  std::array<char, 8> magic;
  SharedBlock block;
};
static_assert(sizeof(Layout) == sizeof(CUipcMemHandle));

}  // namespace

CUipcMemHandle HandleOf(const SharedBlock& block) {
  const Layout layout{.magic = kMagic, .block = block};
  CUipcMemHandle handle{};
  std::memcpy(&handle, &layout, sizeof(handle));
  return handle;
}

std::optional<SharedBlock> BlockOf(const CUipcMemHandle& handle) {
  Layout layout{};
  std::memcpy(&layout, &handle, sizeof(layout));
  if (layout.magic != kMagic) return std::nullopt;
  return layout.block;
}

}  // namespace gmb::preload
