#include <cuda.h>
#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/gpu/driver_call.h"

// Whether what one thread does in the driver delays another thread's unmap, and
// what else a lease's move is made of: map, access, unmap. It knows nothing of
// gmb and is run natively.
//   gpu_unmap_delay SECONDS [BYTES]
// One thread moves eight handles of 64 MiB to and fro; meanwhile another one
// does nothing, pins BYTES (1 GiB) of its memory and lets them go, allocates
// and frees BYTES of page-locked memory, loads and unloads a module that the
// driver compiles, or links one; SECONDS of each. Between two of its calls it
// does nothing for as long as the last one took: the driver's lock goes to the
// thread that had it last, and nobody else would get it. A line for each:
//   delayed   unmaps that took longer than any without company, and
//   worst     how much of the longest call of the other thread that is.

namespace {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr size_t kHandleBytes = size_t{64} << 20;
constexpr size_t kHandles = 8;
constexpr int kFunctions = 100;  // of the module: a tenth of a second and more

double Since(Clock::time_point began) {
  return Milliseconds(Clock::now() - began).count();
}

// Functions that are not alike, so that each is compiled.
std::string ModuleText() {
  std::string text = ".version 7.0\n.target sm_75\n.address_size 64\n";
  for (int i = 0; i < kFunctions; ++i) {
    text += ".visible .entry f" + std::to_string(i) +
            "(.param .u64 to) {\n"
            ".reg .u64 %at; .reg .u32 %x, %y;\n"
            "ld.param.u64 %at, [to]; cvta.to.global.u64 %at, %at;\n"
            "mov.u32 %x, %tid.x; mov.u32 %y, %ctaid.x;\n";
    for (int step = 0; step < 64; ++step) {
      text += "mad.lo.u32 %x, %x, %y, " + std::to_string(i * 64 + step) +
              "; xor.b32 %y, %y, %x;\n";
    }
    text += "st.global.u32 [%at], %x; ret;\n}\n";
  }
  return text;
}

struct Moves {
  std::vector<double> map, access, unmap;
};

// Handles that one thread maps and unmaps. Their first word is looked at each
// time, so that a move is one that a program would see.
class Mover {
 public:
  Mover() {
    CUmemAllocationProp of{};
    of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    of.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access_.location = of.location;
    access_.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    GMB_CALL(cuMemAddressReserve, &at_, kHandles * kHandleBytes, 0, 0, 0);
    for (size_t i = 0; i < kHandles; ++i) {
      GMB_CALL(cuMemCreate, &handles_[i], kHandleBytes, &of, 0);
      Map(i, nullptr);
      GMB_CALL(cuMemsetD32, Address(i), static_cast<unsigned>(i + 1),
               kHandleBytes / 4);
    }
    GMB_CALL(cuCtxSynchronize);
  }

  // All of them, out and back.
  void Round(Moves* moves) {
    for (size_t i = 0; i < kHandles; ++i) {
      const auto began = Clock::now();
      GMB_CALL(cuMemUnmap, Address(i), kHandleBytes);
      moves->unmap.push_back(Since(began));
    }
    for (size_t i = 0; i < kHandles; ++i) {
      Map(i, moves);
      unsigned word = 0;
      GMB_CALL(cuMemcpyDtoH, &word, Address(i) + kHandleBytes - 4, 4);
      if (word == i + 1) continue;
      std::fprintf(stderr, "gpu_unmap_delay: handle %zu has %u: WRONG\n", i,
                   word);
      std::exit(1);
    }
  }

 private:
  [[nodiscard]] CUdeviceptr Address(size_t i) const {
    return at_ + i * kHandleBytes;
  }
  void Map(size_t i, Moves* moves) {
    auto began = Clock::now();
    GMB_CALL(cuMemMap, Address(i), kHandleBytes, 0, handles_[i], 0);
    const double map = Since(began);
    began = Clock::now();
    GMB_CALL(cuMemSetAccess, Address(i), kHandleBytes, &access_, 1);
    if (moves == nullptr) return;
    moves->access.push_back(Since(began));
    moves->map.push_back(map);
  }

  CUmemAccessDesc access_{};
  CUdeviceptr at_ = 0;
  std::array<CUmemGenericAllocationHandle, kHandles> handles_{};
};

// The other thread's work, over and over, and how long each part took.
class Company {
 public:
  using Part = std::pair<const char*, std::function<void()>>;
  Company(const char* name, std::vector<Part> parts)
      : name_(name), parts_(std::move(parts)), took_(parts_.size()) {}

  [[nodiscard]] const char* name() const { return name_; }
  void Work(CUcontext context, const std::atomic<bool>& over) {
    GMB_CALL(cuCtxSetCurrent, context);
    do {
      for (size_t i = 0; i < parts_.size(); ++i) {
        const auto began = Clock::now();
        parts_[i].second();
        took_[i].push_back(Since(began));
        std::this_thread::sleep_for(Milliseconds(took_[i].back()));
      }
      if (parts_.empty())
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    } while (!over);
  }
  [[nodiscard]] double Longest() const {
    double longest = 0;
    for (const auto& took : took_) {
      for (const double ms : took) longest = std::max(longest, ms);
    }
    return longest;
  }
  void Print() {
    for (size_t i = 0; i < parts_.size(); ++i) {
      std::sort(took_[i].begin(), took_[i].end());
      std::printf("      %s: %zu times, median %.2f, longest %.2f ms\n",
                  parts_[i].first, took_[i].size(),
                  took_[i][took_[i].size() / 2], took_[i].back());
    }
  }

 private:
  const char* const name_;
  const std::vector<Part> parts_;
  std::vector<std::vector<double>> took_;
};

double Quantile(std::vector<double>* values, double part) {
  std::sort(values->begin(), values->end());
  const auto at =
      static_cast<size_t>(part * static_cast<double>(values->size()));
  return (*values)[std::min(at, values->size() - 1)];
}

void PrintMoves(const char* what, std::vector<double>* took) {
  const double longest = Quantile(took, 1);
  std::printf("      %-7s %6zu times: median %.3f, p99 %.3f, longest %.3f ms\n",
              what, took->size(), Quantile(took, 0.5), Quantile(took, 0.99),
              longest);
}

std::vector<Company> Companies(size_t bytes, const std::string& module_text) {
  // Of its own: nothing else has pages there.
  void* const own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (own == MAP_FAILED) {
    std::perror("gpu_unmap_delay: mmap");
    std::exit(1);
  }
  static void* allocated = nullptr;
  static CUmodule loaded = nullptr;
  const auto link = [&module_text] {
    CUlinkState state = nullptr;
    void* image = nullptr;
    size_t size = 0;
    GMB_CALL(cuLinkCreate, 0, nullptr, nullptr, &state);
    GMB_CALL(cuLinkAddData, state, CU_JIT_INPUT_PTX,
             const_cast<char*>(module_text.c_str()), module_text.size() + 1,
             "m", 0, nullptr, nullptr);
    GMB_CALL(cuLinkComplete, state, &image, &size);
    GMB_CALL(cuLinkDestroy, state);
  };
  std::vector<Company> all;
  all.emplace_back("nobody", std::vector<Company::Part>{});
  all.emplace_back(
      "host registration",
      std::vector<Company::Part>{
          {"cuMemHostRegister",
           [own, bytes] { GMB_CALL(cuMemHostRegister, own, bytes, 0); }},
          {"cuMemHostUnregister",
           [own] { GMB_CALL(cuMemHostUnregister, own); }}});
  all.emplace_back(
      "host allocation",
      std::vector<Company::Part>{
          {"cuMemHostAlloc",
           [bytes] { GMB_CALL(cuMemHostAlloc, &allocated, bytes, 0); }},
          {"cuMemFreeHost", [] { GMB_CALL(cuMemFreeHost, allocated); }}});
  all.emplace_back(
      "module load",
      std::vector<Company::Part>{
          {"cuModuleLoadData",
           [&module_text] {
             GMB_CALL(cuModuleLoadData, &loaded, module_text.c_str());
           }},
          {"cuModuleUnload", [] { GMB_CALL(cuModuleUnload, loaded); }}});
  all.emplace_back("link", std::vector<Company::Part>{{"cuLink", link}});
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0;
  const size_t bytes =
      argc > 2 ? std::strtoull(argv[2], nullptr, 10) : size_t{1} << 30;
  if (argc > 3 || seconds <= 0 || bytes == 0) {
    std::fprintf(stderr, "usage: gpu_unmap_delay SECONDS [BYTES]\n");
    return 2;
  }
  setenv("CUDA_CACHE_DISABLE", "1", 1);  // a module is compiled each time
  GMB_CALL(cuInit, 0);
  CUcontext context = nullptr;
  GMB_CALL(cuDevicePrimaryCtxRetain, &context, 0);
  GMB_CALL(cuCtxSetCurrent, context);
  const std::string module_text = ModuleText();
  Mover mover;
  double alone = 0;  // the longest unmap without company
  for (Company& company : Companies(bytes, module_text)) {
    Moves moves;
    std::atomic<bool> over{false};
    std::thread other([&] { company.Work(context, over); });
    const auto began = Clock::now();
    while (Since(began) < seconds * 1e3) mover.Round(&moves);
    over = true;
    other.join();
    if (alone == 0)
      alone = *std::max_element(moves.unmap.begin(), moves.unmap.end());
    const auto delayed =
        std::count_if(moves.unmap.begin(), moves.unmap.end(),
                      [&](double took) { return took > alone; });
    std::printf("beside %s: %td of %zu unmaps delayed", company.name(), delayed,
                moves.unmap.size());
    const double longest = company.Longest();
    const double worst = Quantile(&moves.unmap, 1);
    if (longest > 0) {
      std::printf(", worst %.0f %% of its longest call", worst / longest * 100);
    }
    std::printf("\n");
    PrintMoves("unmap", &moves.unmap);
    PrintMoves("map", &moves.map);
    PrintMoves("access", &moves.access);
    company.Print();
    std::fflush(stdout);
  }
  std::printf("all contents right\n");
  return 0;
}
