// `gmb run`: which of the driver's functions are known, and what becomes of one
// that is not.
#include "client/preload/known_functions.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "client/preload/entry_points.h"
#include "client/preload/find_symbol.h"
#include "client/preload/gated.h"
#include "client/preload/tripwire.h"
#include "client/preload/ungated_functions.h"

namespace gmb::preload {
namespace {

// Each name has its end, and the whole list has one more.
constexpr size_t kUngatedCount = std::count(std::begin(kUngatedFunctions),
                                            std::end(kUngatedFunctions), '\0') -
                                 1;

// Null for those that this driver lacks.
std::array<std::atomic<void*>, kUngatedCount> ungated_reals{};

// `visit` says whether to go on.
template <typename Visit>
void ForEachUngated(Visit visit) {
  for (const char* name = kUngatedFunctions; *name != '\0' && visit(name);
       name += std::strlen(name) + 1) {
  }
}

bool IsUngatedReal(const void* real) {
  return std::any_of(ungated_reals.begin(), ungated_reals.end(),
                     [real](const std::atomic<void*>& one) {
                       return one.load(std::memory_order_relaxed) == real;
                     });
}

}  // namespace

bool IsKnownSymbol(const char* symbol) {
  if (FindGatedBySymbol(symbol) != nullptr) return true;
  bool known = false;
  ForEachUngated([&](const char* name) {
    known = std::strcmp(name, symbol) == 0;
    return !known;
  });
  return known;
}

bool IsFormOfKnown(const char* name) {
  if (IsGatedName(name)) return true;
  const std::string_view base = BaseName(name);
  bool known = false;
  ForEachUngated([&](const char* one) {
    known = BaseName(one) == base;
    return !known;
  });
  return known;
}

const char* FormOfHandleTaker(const char* name) {
  constexpr std::array kTakers = {
      "cuMulticastBindMem", "cuMemExportToShareableHandle",
      "cuMemGetAllocationPropertiesFromHandle", "cuMemMap", "cuMemRelease"};
  const std::string_view base = BaseName(name);
  const auto* const found = std::find(kTakers.begin(), kTakers.end(), base);
  return found == kTakers.end() ? nullptr : *found;
}

void LoadKnownFunctions(void* library) {
  LoadServedFunctions(library);
  LoadGatedFunctions(library);
  auto* place = ungated_reals.begin();
  ForEachUngated([&](const char* name) {
    (place++)->store(RealSymbol(library, name), std::memory_order_relaxed);
    return true;
  });
}

void* InPlaceOf(const char* name, void* real) {
  if (const EntryPoint* const served = FindByReal(real))
    return served->function;
  if (const GatedFunction* const gated = FindGatedByReal(real))
    return gated->function;
  if (!IsNameOfDriver(name) || IsUngatedReal(real)) return real;
  return BehindTripwire(name, real);
}

}  // namespace gmb::preload
