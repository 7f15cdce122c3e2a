#ifndef GMB_CLIENT_PRELOAD_POINTER_ANSWERS_H_
#define GMB_CLIENT_PRELOAD_POINTER_ANSWERS_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "base/mutex.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {

// Memory of which the driver says the same.
struct PointerKind {
  CUdevice device = 0;
  // 0: an allocation. Else the program maps it itself; who may access it, as
  // AccessKey has it.
  uint64_t access = 0;
  uint64_t handle_types = 0;  // that the program asked for
  friend auto operator<=>(const PointerKind&, const PointerKind&) = default;
};
// Never 0; other for another access, as good as always.
[[nodiscard]] uint64_t AccessKey(const std::vector<CUmemAccessDesc>& access);

// The driver's answers about leased memory when it is asked about a pointer:
// the same for all of a kind, but for the address. Noted once, they can be
// given while the memory is away, of which the driver would say nothing.
// Thread-safe.
class PointerAnswers {
 public:
  // The two functions have answers of their own.
  enum class Form : uint8_t { kOne, kMany };
  // Asks the driver for one attribute of a leased address of the kind.
  using Ask = std::function<CUresult(void* data)>;

  // Does nothing for an attribute that is known, or differs from one lease to
  // the next. `address` is the one that is asked about. A device pointer is
  // noted only where it is that address: whether a kernel can use it depends on
  // the current context.
  void Note(Form form, const PointerKind& kind, CUpointer_attribute attribute,
            CUdeviceptr address, const Ask& ask);
  // False, with nothing written: not known.
  [[nodiscard]] bool Say(Form form, const PointerKind& kind,
                         CUpointer_attribute attribute, CUdeviceptr address,
                         void* data, CUresult* result);

 private:
  static constexpr size_t kMostBytes = 16;
  struct Answer {
    CUresult result = CUDA_SUCCESS;
    std::array<unsigned char, kMostBytes> bytes{};
    size_t written = 0;  // the first so many
  };

  base::Mutex mu_;
  std::map<std::tuple<Form, PointerKind, CUpointer_attribute>, Answer> answers_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_POINTER_ANSWERS_H_
