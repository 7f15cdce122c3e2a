// `gmb run`: the 64 bytes that a program gives to another process.
#include "client/preload/ipc_handle.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/unique_fd.h"

namespace gmb::preload {
namespace {

// How ours begin, with the version of what follows; the driver's do not.
constexpr std::array<char, 8> kMagic = {'g', 'm', 'b', '-', 'i', 'p', 'c', 1};

struct Layout {
  std::array<char, 8> magic;
  SharedBlock block;
};
static_assert(sizeof(Layout) == sizeof(CUipcMemHandle));

constexpr int kSeals = F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK;

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

int DescriptorOf(const SharedBlock& block) {
  const CUipcMemHandle handle = HandleOf(block);
  base::UniqueFd file(
      memfd_create("gmb-shared-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid() ||
      write(file.get(), &handle, sizeof(handle)) != sizeof(handle) ||
      fcntl(file.get(), F_ADD_SEALS, kSeals) != 0) {
    return -1;
  }
  return file.release();
}

std::optional<SharedBlock> BlockOf(int descriptor) {
  struct stat info {};
  CUipcMemHandle handle{};
  // Only a sealed memfd is looked into: a read of another file may take for ever.
  const int seals = fcntl(descriptor, F_GET_SEALS);
  if (seals < 0 || (seals & kSeals) != kSeals ||
      fstat(descriptor, &info) != 0 || !S_ISREG(info.st_mode) ||
      info.st_size != sizeof(handle) ||
      pread(descriptor, &handle, sizeof(handle), 0) != sizeof(handle)) {
    return std::nullopt;
  }
  return BlockOf(handle);
}

}  // namespace gmb::preload
