// `gmb run`: the driver's own functions.
#include "client/preload/driver.h"

#include <dlfcn.h>

#include "client/preload/exported.h"
#include "client/preload/find_symbol.h"
#include "client/preload/known_functions.h"

namespace gmb::preload {
namespace {

const Driver* LoadDriver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto* const driver = new Driver;  // lives as long as the process
#define GMB_REAL_LOAD(name) \
  driver->name =            \
      reinterpret_cast<decltype(&::name)>(RealSymbol(library, #name));
  GMB_REAL_FUNCTIONS(GMB_REAL_LOAD)
#undef GMB_REAL_LOAD
#define GMB_REAL_LOAD_V1(name)                                       \
  driver->name##_v1 = reinterpret_cast<decltype(driver->name##_v1)>( \
      RealSymbol(library, #name));
  GMB_REAL_LOAD_V1(cuGetProcAddress)
  GMB_REAL_LOAD_V1(cuDevicePrimaryCtxReset)
  GMB_REAL_LOAD_V1(cuDevicePrimaryCtxRelease)
  GMB_REAL_LOAD_V1(cuCtxDestroy)
  GMB_REAL_LOAD_V1(cuStreamDestroy)
  GMB_REAL_LOAD_V1(cuStreamBeginCapture)
#undef GMB_REAL_LOAD_V1
#define GMB_REAL_LOAD_MEMBER(name) \
  driver->name =                   \
      reinterpret_cast<decltype(driver->name)>(RealSymbol(library, #name));
  GMB_REAL_LOAD_MEMBER(cuCtxAttach)
  GMB_REAL_LOAD_MEMBER(cuCtxDetach)
  GMB_REAL_LOAD_MEMBER(cuCtxRecordEvent)
  GMB_REAL_LOAD_MEMBER(cuCtxSynchronize_v2)
  GMB_REAL_LOAD_MEMBER(cuGreenCtxDestroy)
  GMB_REAL_LOAD_MEMBER(cuCtxFromGreenCtx)
#undef GMB_REAL_LOAD_MEMBER
  LoadKnownFunctions(library);
  return driver;
}

}  // namespace

const Driver* Driver::Get() {
  static const Driver* const kDriver = LoadDriver();
  return kDriver;
}

bool Driver::HasPrimaryContext(CUdevice device) const {
  unsigned flags = 0;
  int active = 0;
  return cuDevicePrimaryCtxGetState(device, &flags, &active) == CUDA_SUCCESS &&
         active != 0;
}

}  // namespace gmb::preload
