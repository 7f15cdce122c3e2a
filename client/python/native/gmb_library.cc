// The client library that gmb of the Python package has chosen.
#include "client/python/native/gmb_library.h"

#include <dlfcn.h>

#include "client/python/native/gmb_torch.h"

namespace gmb::python {
namespace {

GmbLibrary the_library;

}  // namespace

const GmbLibrary& TheLibrary() { return the_library; }

}  // namespace gmb::python

int32_t gmb_torch_use_library(void* library) {
  gmb::python::GmbLibrary& uses = gmb::python::the_library;
  bool complete = true;
#define GMB_TORCH_FIND(name)                                                \
  uses.name = reinterpret_cast<decltype(uses.name)>(dlsym(library, #name)); \
  complete = complete && uses.name != nullptr;
  GMB_TORCH_USES(GMB_TORCH_FIND)
#undef GMB_TORCH_FIND
  return complete ? 1 : 0;
}
