// `gmb run`: the first call of a function that gmb does not know ends the lending
// of memory.
#include "client/preload/tripwire.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/cancels_later.h"
#include "client/preload/known_functions.h"
#include "client/preload/not_possible.h"
#include "client/preload/program_gate.h"
#include "client/preload/say.h"
#include "client/preload/settings.h"
#include "client/preload/virtual_handles.h"

extern "C" {

// Hidden: the stubs address it without the loader.
__attribute__((visibility("hidden")))
std::array<gmb::preload::Tripwire, gmb::preload::kTripwires>
    gmb_preload_tripwires{};

// Comes between a stub and its function. Not 0: the answer of the call, which
// must not be made.
// `words` are those that arguments travel in first, whether or not there are as
// many.
__attribute__((visibility("hidden"), used)) int gmb_preload_trip(
    gmb::preload::Tripwire* wire, const uint64_t* words) noexcept;

// A label below.
// NOLINTNEXTLINE(readability-identifier-naming)
extern const char gmb_preload_tripwire_stubs[];

// A stub has 32 bytes. The arguments of the function are not known: all that
// can have an argument is left as it is, and the function is entered by a jump,
// with its caller's return address and what lies behind that.
#ifndef __x86_64__
#error "the preload library's tripwires are written for x86-64"
#endif
asm(R"(
  .text
  .p2align 5
  .globl gmb_preload_tripwire_stubs
  .hidden gmb_preload_tripwire_stubs
  .type gmb_preload_tripwire_stubs, @function
gmb_preload_tripwire_stubs:
  .cfi_startproc
  .set gmb_preload_wire, 0
  .rept 256
  .p2align 5
  endbr64
  cmpl $0, gmb_preload_tripwires+gmb_preload_wire+16(%rip)
  je 1f
  jmpq *gmb_preload_tripwires+gmb_preload_wire(%rip)
1:
  leaq gmb_preload_tripwires+gmb_preload_wire(%rip), %r11
  jmp gmb_preload_tripwire_call
  .set gmb_preload_wire, gmb_preload_wire+32
  .endr
  .cfi_endproc
  .size gmb_preload_tripwire_stubs, .-gmb_preload_tripwire_stubs

  .p2align 4
  .type gmb_preload_tripwire_call, @function
gmb_preload_tripwire_call:
  .cfi_startproc
  pushq %rbp
  .cfi_adjust_cfa_offset 8
  .cfi_rel_offset %rbp, 0
  movq %rsp, %rbp
  .cfi_def_cfa_register %rbp
  subq $208, %rsp
  movq %rdi, (%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq %rcx, 24(%rsp)
  movq %r8, 32(%rsp)
  movq %r9, 40(%rsp)
  movq %rax, 48(%rsp)
  movq %r10, 56(%rsp)
  movq %r11, 64(%rsp)
  movaps %xmm0, 80(%rsp)
  movaps %xmm1, 96(%rsp)
  movaps %xmm2, 112(%rsp)
  movaps %xmm3, 128(%rsp)
  movaps %xmm4, 144(%rsp)
  movaps %xmm5, 160(%rsp)
  movaps %xmm6, 176(%rsp)
  movaps %xmm7, 192(%rsp)
  movq %r11, %rdi
  movq %rsp, %rsi
  call gmb_preload_trip
  testl %eax, %eax
  jne 1f
  movaps 80(%rsp), %xmm0
  movaps 96(%rsp), %xmm1
  movaps 112(%rsp), %xmm2
  movaps 128(%rsp), %xmm3
  movaps 144(%rsp), %xmm4
  movaps 160(%rsp), %xmm5
  movaps 176(%rsp), %xmm6
  movaps 192(%rsp), %xmm7
  movq (%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  movq 24(%rsp), %rcx
  movq 32(%rsp), %r8
  movq 40(%rsp), %r9
  movq 48(%rsp), %rax
  movq 56(%rsp), %r10
  movq 64(%rsp), %r11
  .cfi_remember_state
  leave
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  jmpq *(%r11)
1:
  .cfi_restore_state
  leave
  .cfi_def_cfa %rsp, 8
  .cfi_restore %rbp
  ret
  .cfi_endproc
  .size gmb_preload_tripwire_call, .-gmb_preload_tripwire_call
)");

}  // extern "C"

namespace gmb::preload {
namespace {

static_assert(kTripwires == 256 && sizeof(Tripwire) == 32);
static_assert(offsetof(Tripwire, real) == 0 &&
              offsetof(Tripwire, tripped) == 16);
static_assert(sizeof(Tripwire::takes_handle) == 8);
static_assert(sizeof(Tripwire::real) == 8 && sizeof(Tripwire::tripped) == 4);

void* StubOf(const Tripwire& wire) {
  const size_t place = &wire - gmb_preload_tripwires.data();
  return const_cast<char*>(gmb_preload_tripwire_stubs) + place * 32;
}

// The six of the stub. Fewer arguments leave others in them that nobody has
// given, so that a name of ours there says nothing of most functions.
constexpr size_t kWords = 6;

bool HasHandleOfOurs(const uint64_t* words) {
  return std::any_of(words, words + kWords, VirtualHandles::IsOurs);
}

std::string TextOf(const char* name) {
  constexpr size_t kLongest = 100;
  const std::string known(name, strnlen(name, kLongest));
  return IsFormOfKnown(name)
             ? "it called a form of " + known + " that gmb does not know"
             : "it called " + known + ", which gmb does not know";
}

}  // namespace

// Without a lock: a fork's child would wait for who holds it.
void* BehindTripwire(const char* name, void* real) {
  const char* const takes_handle = FormOfHandleTaker(name);
  std::unique_ptr<std::string> text;
  for (Tripwire& wire : gmb_preload_tripwires) {
    void* there = wire.real.load(std::memory_order_acquire);
    if (there == nullptr) {
      if (text == nullptr) text = std::make_unique<std::string>(TextOf(name));
      if (wire.real.compare_exchange_strong(there, real)) {
        wire.why.store(text.release(), std::memory_order_release);
        if (takes_handle != nullptr)
          wire.takes_handle.store(takes_handle, std::memory_order_release);
        Say(std::string(name, strnlen(name, 100)) +
            " is a function that gmb does not know: memory is lent until it is "
            "called");
        return StubOf(wire);
      }
    }
    if (there == real) {
      if (takes_handle != nullptr)
        wire.takes_handle.store(takes_handle, std::memory_order_release);
      return StubOf(wire);
    }
  }
  ProgramGate::NeverPark(
      "the driver has more functions that gmb does not know than it can watch");
  return real;
}

}  // namespace gmb::preload

int gmb_preload_trip(gmb::preload::Tripwire* wire,
                     const uint64_t* words) noexcept {
  using gmb::preload::ProgramGate;
  using gmb::preload::Settings;
  const gmb::base::CancelsLater cancels_later;
  const char* const takes_handle =
      wire->takes_handle.load(std::memory_order_acquire);
  if (takes_handle != nullptr && gmb::preload::HasHandleOfOurs(words))
    return gmb::preload::RefuseHandle(takes_handle);
  const std::string* const why = wire->why.load(std::memory_order_acquire);
  if (!ProgramGate::EndLending(why != nullptr
                                   ? why->c_str()
                                   : "it called a function that gmb does not "
                                     "know")) {
    return gmb::preload::MemoryIsAway();
  }
  // Under a forced parking each call waits for the memory, and counts.
  if (gmb::preload::TheSettings().park != Settings::Park::kForce &&
      takes_handle == nullptr)
    wire->tripped.store(1, std::memory_order_release);
  return 0;
}
