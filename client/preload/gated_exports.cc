// `gmb run`: the gated functions under the driver's names, for programs that are
// linked to it, and for dlsym. Of the library alone: a test that is linked to
// the parts must not have these names.
#include "client/preload/gated_wrappers.h"

// A jump to the wrapper, whatever it takes. (An indirect function would be
// asked for its address before this library is ready, by libraries that are
// bound at their start.)
#define GMB_EXPORT_GATED(name, ...)                                    \
  __attribute__((visibility("hidden"), used)) void* gmb_gated_##name = \
      reinterpret_cast<void*>(&gmb::preload::__VA_ARGS__);             \
  asm(".text\n.p2align 4\n.globl " #name "\n.type " #name              \
      ", @function\n" #name ":\n  endbr64\n  jmp *gmb_gated_" #name    \
      "(%rip)\n.size " #name ", .-" #name "\n");

// NOLINTBEGIN(bugprone-macro-parentheses): what is between angle brackets
#define GMB_TOUCHING(name, count)                         \
  GMB_EXPORT_GATED(name, Touching<gmb::preload::k_##name, \
                                  std::make_index_sequence<(count)>>::Call)
#define GMB_ASKING(name, count, address)                         \
  GMB_EXPORT_GATED(name, Asking<gmb::preload::k_##name, address, \
                                std::make_index_sequence<(count)>>::Call)
#define GMB_PINNING(name, count)                         \
  GMB_EXPORT_GATED(name, Pinning<gmb::preload::k_##name, \
                                 std::make_index_sequence<(count)>>::Call)
#define GMB_SHARING(name, count, address)                         \
  GMB_EXPORT_GATED(name, Sharing<gmb::preload::k_##name, address, \
                                 std::make_index_sequence<(count)>>::Call)
#define GMB_BINDING(name, count, handle)                         \
  GMB_EXPORT_GATED(name, Binding<gmb::preload::k_##name, handle, \
                                 std::make_index_sequence<(count)>>::Call)
#define GMB_CREATING(name, count)                         \
  GMB_EXPORT_GATED(name, Creating<gmb::preload::k_##name, \
                                  std::make_index_sequence<(count)>>::Call)
// NOLINTEND(bugprone-macro-parentheses)

// NOLINTBEGIN(readability-identifier-naming): the driver's names
extern "C" {
GMB_TOUCHING_FUNCTIONS(GMB_TOUCHING)
GMB_ASKING_FUNCTIONS(GMB_ASKING)
GMB_PINNING_FUNCTIONS(GMB_PINNING)
GMB_SHARING_FUNCTIONS(GMB_SHARING)
GMB_BINDING_FUNCTIONS(GMB_BINDING)
GMB_CREATING_FUNCTIONS(GMB_CREATING)
}
// NOLINTEND(readability-identifier-naming)
