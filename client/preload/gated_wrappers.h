#ifndef GMB_CLIENT_PRELOAD_GATED_WRAPPERS_H_
#define GMB_CLIENT_PRELOAD_GATED_WRAPPERS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "client/preload/gated_functions.h"
#include "client/preload/not_possible.h"
#include "client/preload/program_gate.h"

// The gated functions themselves. They differ in nothing but how many words they
// take. A CUresult is an int here. A thread may end inside of the driver's
// function (pthread_exit, a cancellation), and is unwound through here then. The
// unwinder may be the program's, which cannot work with ours: so a frame of ours
// must have nothing to do then. Sources that instantiate these are compiled
// without exceptions, so that GatedCall's destructor is not run; the slot leaves
// the call at the thread's end. None is noexcept, which would be something to
// do.

namespace gmb::preload {

// Places in the list.
// NOLINTBEGIN(readability-identifier-naming): the driver's names
#define GMB_PLACE(name, ...) k_##name,
enum GatedPlace : size_t {
  GMB_TOUCHING_FUNCTIONS(GMB_PLACE) GMB_ASKING_FUNCTIONS(GMB_PLACE)
      GMB_PINNING_FUNCTIONS(GMB_PLACE) GMB_SHARING_FUNCTIONS(GMB_PLACE)
          GMB_BINDING_FUNCTIONS(GMB_PLACE) GMB_CREATING_FUNCTIONS(GMB_PLACE)
              kGatedCount
};
#undef GMB_PLACE
// NOLINTEND(readability-identifier-naming)

inline constexpr int kNotSupported = 801;  // CUDA_ERROR_NOT_SUPPORTED

// The driver's own function; null for one that it lacks.
[[nodiscard]] void* RealOf(GatedPlace place);
// "it called cuX", for people.
[[nodiscard]] const char* CalledText(GatedPlace place);
// `where` is the address of a CUcontext.
void ContextCreated(uint64_t where);
// Whether the address is of leased memory.
[[nodiscard]] bool IsLeased(uint64_t address);
// Whether it is a handle that cuMemCreate gave for leased memory.
[[nodiscard]] bool IsOurHandle(uint64_t handle);

// The driver's answers about leased memory are noted while it is there, and
// given again while it may be away. `words` are the call's. False: it is not
// known.
void NotePointer(GatedPlace place, const uint64_t* words);
[[nodiscard]] bool AnswerPointer(GatedPlace place, const uint64_t* words,
                                 int* result);
// The same at any time, without asking the driver about the pointer, for the
// question that launchers ask about each argument of a kernel: which device
// address it has. False also where the current context is of another device.
[[nodiscard]] bool AnswerArgument(GatedPlace place, const uint64_t* words,
                                  int* result);
// The driver knows the mappings of a lease, and not what the program has asked
// for: that is put right in what it has answered.
void CorrectPointer(GatedPlace place, const uint64_t* words);

template <size_t>
using Word = uint64_t;

// Of each argument the word that it travels in.
template <GatedPlace kPlace, size_t... kArguments>
int CallReal(Word<kArguments>... words) {
  using Function = int (*)(Word<kArguments>...);
  const auto real = reinterpret_cast<Function>(RealOf(kPlace));
  return real == nullptr ? kNotSupported : real(words...);
}

template <GatedPlace kPlace, typename Arguments>
struct Touching;
template <GatedPlace kPlace, size_t... kArguments>
struct Touching<kPlace, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    const GatedCall call;
    if (!call.in()) [[unlikely]]
      return MemoryIsAway();
    return CallReal<kPlace, kArguments...>(words...);
  }
};

template <GatedPlace kPlace, size_t kAddress, typename Arguments>
struct Asking;
template <GatedPlace kPlace, size_t kAddress, size_t... kArguments>
struct Asking<kPlace, kAddress, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    const std::array<uint64_t, sizeof...(words)> all{words...};
    int result = 0;
    if (AnswerArgument(kPlace, all.data(), &result)) return result;
    if (!IsLeased(all[kAddress]))
      return CallReal<kPlace, kArguments...>(words...);
    const auto ask = [&] {
      NotePointer(kPlace, all.data());
      const int answer = CallReal<kPlace, kArguments...>(words...);
      if (answer == 0) CorrectPointer(kPlace, all.data());
      return answer;
    };
    {
      const GatedLook look;
      if (look.in()) return ask();
    }
    if (AnswerPointer(kPlace, all.data(), &result)) return result;
    const GatedCall call;
    if (!call.in()) return MemoryIsAway();
    return ask();
  }
};

// In the gate, so that nothing is unmapped meanwhile; but memory that is away is
// not brought back for it, and stays away.
template <GatedPlace kPlace, typename Arguments>
struct Pinning;
template <GatedPlace kPlace, size_t... kArguments>
struct Pinning<kPlace, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    {
      const GatedLook look;
      if (look.in()) return CallReal<kPlace, kArguments...>(words...);
    }
    if (ProgramGate::Get()->is_away())
      return CallReal<kPlace, kArguments...>(words...);
    // Where the memory does not come back nothing is unmapped either.
    const GatedCall call;
    return CallReal<kPlace, kArguments...>(words...);
  }
};

template <GatedPlace kPlace, int kAddress, typename Arguments>
struct Sharing;
template <GatedPlace kPlace, int kAddress, size_t... kArguments>
struct Sharing<kPlace, kAddress, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    const std::array<uint64_t, sizeof...(words)> all{words...};
    // Without an address it counts also before there is memory of ours.
    if (kAddress < 0 || (ProgramGate::Get() != nullptr &&
                         IsLeased(all[static_cast<size_t>(kAddress)]))) {
      ProgramGate::NeverPark(CalledText(kPlace));
    }
    const GatedCall call;
    if (!call.in()) return MemoryIsAway();
    return CallReal<kPlace, kArguments...>(words...);
  }
};

template <GatedPlace kPlace, size_t kHandle, typename Arguments>
struct Binding;
template <GatedPlace kPlace, size_t kHandle, size_t... kArguments>
struct Binding<kPlace, kHandle, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    const std::array<uint64_t, sizeof...(words)> all{words...};
    if (IsOurHandle(all[kHandle])) return RefuseMulticast();
    return CallReal<kPlace, kArguments...>(words...);
  }
};

template <GatedPlace kPlace, typename Arguments>
struct Creating;
template <GatedPlace kPlace, size_t... kArguments>
struct Creating<kPlace, std::index_sequence<kArguments...>> {
  static int Call(Word<kArguments>... words) {
    const int result = CallReal<kPlace, kArguments...>(words...);
    const std::array<uint64_t, sizeof...(words)> all{words...};
    if (result == 0) ContextCreated(all[0]);
    return result;
  }
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_GATED_WRAPPERS_H_
