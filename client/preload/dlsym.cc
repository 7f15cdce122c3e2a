// Where `gmb run` steps in: a program that looks up a function of the driver
// gets ours, so that its allocations become leases.
#include <dlfcn.h>
#include <link.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "client/preload/entry_points.h"
#include "client/preload/find_symbol.h"
#include "client/preload/gated.h"
#include "client/preload/known_functions.h"
#include "client/preload/loaded_library.h"
#include "client/preload/program_gate.h"
#include "client/preload/ranks.h"

// dlsym and dlvsym, as programs find them. They answer in two steps, because
// dlsym(RTLD_NEXT, ...) means "the next after the library that calls":
// gmb_preload_replacement says whether the name is one of ours; for everything
// else the C library's function is entered by a jump, with the caller's return
// address still in its place.

extern "C" {

__attribute__((visibility("hidden")))
gmb::preload::DlsymFunction gmb_preload_real_dlsym = nullptr;
__attribute__((visibility("hidden")))
gmb::preload::DlvsymFunction gmb_preload_real_dlvsym = nullptr;
// `version` is null for dlsym.
__attribute__((visibility("hidden"))) void* gmb_preload_replacement(
    void* library, const char* name, const char* version,
    void* caller) noexcept;

#ifndef __x86_64__
#error "the preload library's dlsym is written for x86-64"
#endif
asm(R"(
  .text
  .p2align 4
  .globl dlsym
  .type dlsym, @function
dlsym:
  .cfi_startproc
  endbr64
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, (%rsp)
  movq %rsi, 8(%rsp)
  xorl %edx, %edx
  movq 24(%rsp), %rcx
  call gmb_preload_replacement
  movq (%rsp), %rdi
  movq 8(%rsp), %rsi
  addq $24, %rsp
  .cfi_adjust_cfa_offset -24
  testq %rax, %rax
  jne 1f
  jmpq *gmb_preload_real_dlsym(%rip)
1:
  ret
  .cfi_endproc
  .size dlsym, .-dlsym

  .p2align 4
  .globl dlvsym
  .type dlvsym, @function
dlvsym:
  .cfi_startproc
  endbr64
  subq $24, %rsp
  .cfi_adjust_cfa_offset 24
  movq %rdi, (%rsp)
  movq %rsi, 8(%rsp)
  movq %rdx, 16(%rsp)
  movq 24(%rsp), %rcx
  call gmb_preload_replacement
  movq (%rsp), %rdi
  movq 8(%rsp), %rsi
  movq 16(%rsp), %rdx
  addq $24, %rsp
  .cfi_adjust_cfa_offset -24
  testq %rax, %rax
  jne 1f
  jmpq *gmb_preload_real_dlvsym(%rip)
1:
  ret
  .cfi_endproc
  .size dlvsym, .-dlvsym
)");

}  // extern "C"

namespace {

// The driver looks up its own parts too (on WSL its real functions), and must
// not be led back here.
bool IsDriver(void* code) {
  Dl_info where{};
  return dladdr(code, &where) != 0 && where.dli_fname != nullptr &&
         std::strstr(where.dli_fname, "libcuda.so") != nullptr;
}

// Of NCCL (ranks.cc); defined here under the same names.
constexpr std::array kOfNccl = {"ncclCommInitRank", "ncclCommInitRankConfig",
                                "ncclCommInitRankScalable"};

void* OfThisLibrary(const char* name) {
  Dl_info here{};
  if (dladdr(kOfNccl.data(), &here) == 0) return nullptr;
  void* const self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  return self == nullptr ? nullptr : gmb::preload::RealSymbol(self, name);
}

void* Ours(const char* name) {
  if (std::strncmp(name, "nccl", 4) == 0) {
    for (const char* const of_nccl : kOfNccl) {
      if (std::strcmp(name, of_nccl) == 0) return OfThisLibrary(name);
    }
    return nullptr;
  }
  if (const auto* const served = gmb::preload::FindBySymbol(name))
    return served->function;
  const auto* const gated = gmb::preload::FindGatedBySymbol(name);
  return gated == nullptr ? nullptr : gated->function;
}

// A program that has the driver's own in its place does nothing past the gate.
bool IsOnlyCounted(const char* name) {
  const auto* const served = gmb::preload::FindBySymbol(name);
  return served != nullptr && served->only_counted;
}

struct Lookup {
  void* library;
  const char* name;
  const char* version;  // null: whichever is the usual one
};

// The address that the C library gives, asked from here.
void* RealOf(const Lookup& lookup) {
  return lookup.version == nullptr
             ? gmb::preload::RealDlsym()(lookup.library, lookup.name)
             : gmb::preload::RealDlvsym()(lookup.library, lookup.name,
                                          lookup.version);
}

// The address that the driver gives for the name, wherever that is.
void* OfDriver(const char* name) {
  void* const driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (driver == nullptr) return nullptr;
  void* const found = gmb::preload::RealSymbol(driver, name);
  dlclose(driver);
  return found;
}

// Which of two comes first in the loader's list of libraries.
struct Order {
  uint64_t one;
  uint64_t other;
  bool one_is_first;
};

int FindFirst(dl_phdr_info* info, size_t /*size*/, void* data) {
  auto* const order = static_cast<Order*>(data);
  int found = 0;
  gmb::preload::LoadedLibrary(*info).ForEachSegment(
      [&](gmb::preload::LoadedLibrary::Range segment) {
        for (const uint64_t code : {order->one, order->other}) {
          if (code < segment.start || code >= segment.end) continue;
          order->one_is_first = code == order->one;
          found = 1;
        }
      });
  return found;
}

// Whether the caller's RTLD_NEXT does not find this library.
bool IsBehindUs(void* caller) {
  Order order{.one = reinterpret_cast<uint64_t>(kOfNccl.data()),
              .other = reinterpret_cast<uint64_t>(caller),
              .one_is_first = false};
  dl_iterate_phdr(FindFirst, &order);
  return order.one_is_first;
}

// For a name that is none of ours: what to give for it. Null: what the C library
// gives.
void* IfUnknown(const Lookup& lookup, void* caller) {
  const char* const name = lookup.name;
  if (!gmb::preload::IsNameOfDriver(name) ||
      gmb::preload::IsKnownSymbol(name) || IsDriver(caller)) {
    return nullptr;
  }
  void* const its = lookup.library == RTLD_NEXT ? nullptr : RealOf(lookup);
  if (its != nullptr) {
    return IsDriver(its) || its == OfDriver(name)
               ? gmb::preload::InPlaceOf(name, its)
               : nullptr;
  }
  // Which libraries these two mean depends on the caller.
  if ((lookup.library == RTLD_NEXT || lookup.library == RTLD_DEFAULT) &&
      OfDriver(name) != nullptr) {
    gmb::preload::ProgramGate::NeverPark(
        "it looked up a function that gmb does not know, past the library of "
        "`gmb run`");
  }
  return nullptr;
}

}  // namespace

void* gmb_preload_replacement(void* library, const char* name,
                              const char* version, void* caller) noexcept {
  __atomic_store_n(&gmb_preload_real_dlsym, gmb::preload::RealDlsym(),
                   __ATOMIC_RELAXED);
  __atomic_store_n(&gmb_preload_real_dlvsym, gmb::preload::RealDlvsym(),
                   __ATOMIC_RELAXED);
  if (name == nullptr || gmb::preload::RealSymbolsHere::Any()) return nullptr;
  const Lookup lookup{library, name, version};
  void* const ours = Ours(name);
  if (ours == nullptr) return IfUnknown(lookup, caller);
  if (IsDriver(caller)) return nullptr;
  // A function that is not there is not there with us either. RTLD_NEXT means
  // the driver's for a library behind this one.
  if (library == RTLD_NEXT) {
    if (!IsOnlyCounted(name) && IsBehindUs(caller) &&
        OfDriver(name) != nullptr) {
      gmb::preload::ProgramGate::NeverPark(
          "it looked a function up past the library of `gmb run`");
    }
    return nullptr;
  }
  void* const its = RealOf(lookup);
  if (its == nullptr) return nullptr;
  gmb::preload::NoteRealOfNccl(name, its, ours);
  return ours;
}
