// `gmb run`: calls that touch device memory go through the program's gate: which
// ones those are, and how a program's lookups find them.
#include "client/preload/gated.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <string_view>

#include "client/preload/driver.h"
#include "client/preload/find_symbol.h"
#include "client/preload/gated_wrappers.h"
#include "client/preload/process_life.h"
#include "client/preload/the_memory.h"
#include "client/preload/virtual_memory.h"

namespace gmb::preload {
namespace {

std::array<std::atomic<void*>, kGatedCount> reals{};

// NOLINTBEGIN(bugprone-macro-parentheses): what is between angle brackets
#define GMB_TOUCHING(name, count) \
  GatedFunction{                  \
      #name,                      \
      reinterpret_cast<void*>(    \
          &Touching<k_##name, std::make_index_sequence<(count)>>::Call)},
#define GMB_ASKING(name, count, address)              \
  GatedFunction{#name, reinterpret_cast<void*>(       \
                           &Asking<k_##name, address, \
                                   std::make_index_sequence<(count)>>::Call)},
#define GMB_PINNING(name, count) \
  GatedFunction{                 \
      #name,                     \
      reinterpret_cast<void*>(   \
          &Pinning<k_##name, std::make_index_sequence<(count)>>::Call)},
#define GMB_SHARING(name, count, address)       \
  GatedFunction{#name,                          \
                reinterpret_cast<void*>(        \
                    &Sharing<k_##name, address, \
                             std::make_index_sequence<(count)>>::Call)},

#define GMB_BINDING(name, count, handle)       \
  GatedFunction{#name,                         \
                reinterpret_cast<void*>(       \
                    &Binding<k_##name, handle, \
                             std::make_index_sequence<(count)>>::Call)},

#define GMB_CREATING(name, count) \
  GatedFunction{                  \
      #name,                      \
      reinterpret_cast<void*>(    \
          &Creating<k_##name, std::make_index_sequence<(count)>>::Call)},

// NOLINTEND(bugprone-macro-parentheses)

// Not a static variable's start-up: an export may be asked for by that of
// another library.
const std::array<GatedFunction, kGatedCount>& Table() {
  static const std::array<GatedFunction, kGatedCount> kTable = {
      {GMB_TOUCHING_FUNCTIONS(GMB_TOUCHING) GMB_ASKING_FUNCTIONS(GMB_ASKING)
           GMB_PINNING_FUNCTIONS(GMB_PINNING) GMB_SHARING_FUNCTIONS(GMB_SHARING)
               GMB_BINDING_FUNCTIONS(GMB_BINDING)
                   GMB_CREATING_FUNCTIONS(GMB_CREATING)}};
  return kTable;
}

#undef GMB_TOUCHING
#undef GMB_ASKING
#undef GMB_PINNING
#undef GMB_SHARING
#undef GMB_BINDING
#undef GMB_CREATING

}  // namespace

std::string_view BaseName(std::string_view symbol) {
  for (const std::string_view suffix : {"_ptsz", "_ptds"}) {
    if (symbol.size() > suffix.size() &&
        symbol.substr(symbol.size() - suffix.size()) == suffix) {
      symbol.remove_suffix(suffix.size());
    }
  }
  const size_t size = symbol.size();
  if (size > 3 && symbol.substr(size - 3, 2) == "_v") symbol.remove_suffix(3);
  return symbol;
}

void LoadGatedFunctions(void* library) {
  for (size_t place = 0; place < kGatedCount; ++place) {
    reals[place].store(RealSymbol(library, Table()[place].symbol),
                       std::memory_order_relaxed);
  }
}

const GatedFunction* FindGatedBySymbol(const char* symbol) {
  const auto* const found = std::find_if(
      Table().begin(), Table().end(),
      [&](const auto& one) { return std::strcmp(one.symbol, symbol) == 0; });
  return found == Table().end() ? nullptr : found;
}

const GatedFunction* FindGatedByReal(void* real) {
  for (size_t place = 0; place < kGatedCount; ++place) {
    if (reals[place].load(std::memory_order_relaxed) == real)
      return &Table()[place];
  }
  return nullptr;
}

bool IsGatedName(const char* name) {
  const std::string_view base = BaseName(name);
  return std::any_of(Table().begin(), Table().end(), [&](const auto& one) {
    return BaseName(one.symbol) == base;
  });
}

static_assert(kNotSupported == CUDA_ERROR_NOT_SUPPORTED);

void* RealOf(GatedPlace place) {
  void* const known = reals[place].load(std::memory_order_relaxed);
  if (known != nullptr) [[likely]]
    return known;
  // A program that is linked to the driver may call before anything is found.
  static_cast<void>(Driver::Get());
  return reals[place].load(std::memory_order_relaxed);
}

const char* CalledText(GatedPlace place) {
#define GMB_TEXT(name, ...) "it called " #name,
  static constexpr std::array kTexts = {
      GMB_TOUCHING_FUNCTIONS(GMB_TEXT) GMB_ASKING_FUNCTIONS(GMB_TEXT)
          GMB_PINNING_FUNCTIONS(GMB_TEXT) GMB_SHARING_FUNCTIONS(GMB_TEXT)
              GMB_BINDING_FUNCTIONS(GMB_TEXT) GMB_CREATING_FUNCTIONS(GMB_TEXT)};
#undef GMB_TEXT
  static_assert(kTexts.size() == kGatedCount);
  return kTexts[place];
}

void ContextCreated(uint64_t where) {
  const Driver* const driver = Driver::Get();
  if (driver == nullptr || where == 0 || InForkedChild()) return;
  TheMemory(*driver).contexts().Created(*reinterpret_cast<CUcontext*>(where));
}

bool IsLeased(uint64_t address) {
  const Driver* const driver = Driver::Get();
  return driver != nullptr && !InForkedChild() &&
         (TheMemory(*driver).allocations().Contains(address) ||
          TheVirtualMemory(*driver).Contains(address));
}

bool IsOurHandle(uint64_t handle) { return VirtualHandles::IsOurs(handle); }

}  // namespace gmb::preload
