// `gmb run`: cuPointerGetAttribute and cuPointerGetAttributes of leased memory.
// Nobody's gigabytes come back for a question.
#include <algorithm>
#include <cstring>
#include <optional>

#include "client/preload/driver.h"
#include "client/preload/gated_wrappers.h"
#include "client/preload/ipc_memory.h"
#include "client/preload/pointer_answers.h"
#include "client/preload/process_life.h"
#include "client/preload/serve.h"
#include "client/preload/virtual_memory.h"
#include "device/cuda/abi/driver_api.h"

namespace gmb::preload {
namespace {

constexpr uint64_t kMostAttributes = 64;

using Form = PointerAnswers::Form;
using AskOne = CUresult (*)(void*, CUpointer_attribute, CUdeviceptr);
using AskMany = CUresult (*)(unsigned, CUpointer_attribute*, void**,
                             CUdeviceptr);

// A call's words as what they are.
struct Question {
  Form form = Form::kOne;
  CUdeviceptr address = 0;
  PointerKind kind;
  // Of kMany the program's own arrays; else its one part.
  const CUpointer_attribute* attributes = nullptr;
  void* const* results = nullptr;
  CUpointer_attribute attribute{};
  void* result = nullptr;
  uint32_t parts = 1;

  [[nodiscard]] CUpointer_attribute AttributeOf(uint32_t part) const {
    return form == Form::kOne ? attribute : attributes[part];
  }
  [[nodiscard]] void* ResultOf(uint32_t part) const {
    return form == Form::kOne ? result : results[part];
  }
};

PointerAnswers& TheAnswers() {
  static PointerAnswers& answers = *new PointerAnswers;
  return answers;
}

// Without the kind. False: the driver is to refuse it.
bool ReadWords(GatedPlace place, const uint64_t* words, Question* question) {
  if (place == k_cuPointerGetAttribute) {
    question->result = reinterpret_cast<void*>(words[0]);
    question->attribute =
        static_cast<CUpointer_attribute>(static_cast<uint32_t>(words[1]));
    question->address = words[2];
    return question->result != nullptr;
  }
  question->form = Form::kMany;
  question->parts = static_cast<uint32_t>(words[0]);
  question->attributes = reinterpret_cast<const CUpointer_attribute*>(words[1]);
  question->results = reinterpret_cast<void* const*>(words[2]);
  question->address = words[3];
  return question->attributes != nullptr && question->results != nullptr &&
         question->parts > 0 && question->parts <= kMostAttributes &&
         std::all_of(question->results, question->results + question->parts,
                     [](const void* result) { return result != nullptr; });
}

// Nothing for one that is not about leased memory.
std::optional<Question> Read(GatedPlace place, const uint64_t* words) {
  Question question;
  if (!ReadWords(place, words, &question)) return std::nullopt;
  const Driver* const driver = Driver::Get();
  if (driver == nullptr || InForkedChild()) return std::nullopt;
  if (const auto block =
          TheMemory(*driver).allocations().Find(question.address)) {
    question.kind.device = block->device;
    return question;
  }
  const std::optional<PointerKind> mapped =
      TheVirtualMemory(*driver).KindOf(question.address);
  if (!mapped.has_value()) return std::nullopt;
  question.kind = *mapped;
  return question;
}

CUresult AskDriver(GatedPlace place, CUdeviceptr address,
                   CUpointer_attribute attribute, void* data) {
  void* const real = RealOf(place);
  if (real == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (place == k_cuPointerGetAttribute)
    return reinterpret_cast<AskOne>(real)(data, attribute, address);
  return reinterpret_cast<AskMany>(real)(1, &attribute, &data, address);
}

// The driver's values have as many bytes as this one.
template <typename Value>
bool Say(const Value& value, void* data) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): a pointer is a value too
  std::memcpy(data, &value, sizeof(value));
  return true;
}

bool IsRange(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

// Where an allocation begins and how long it is.
bool SayRange(const Driver& driver, CUpointer_attribute attribute,
              CUdeviceptr address, void* data) {
  CUdeviceptr start = 0;
  size_t bytes = 0;
  if (!TheMemory(driver).allocations().GetAddressRange(address, &start,
                                                       &bytes) &&
      !TheIpcMemory(driver).GetAddressRange(address, &start, &bytes)) {
    return false;
  }
  return attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? Say(bytes, data)
                                                      : Say(start, data);
}

// Whether another process can open it is a boolean, of which the driver has
// written as many bytes as it has.
bool SayOfBlock(const Driver& driver, const Block& block,
                CUpointer_attribute attribute, void* data) {
  Memory& memory = TheMemory(driver);
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      CUcontext context = memory.contexts().HandleOf(block.home);
      return context != nullptr && Say(context, data);
    }
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return Say(memory.allocations().PoolOf(block), data);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      *static_cast<unsigned char*>(data) = block.pool == kNoPool ? 1 : 0;
      return true;
    default:
      return false;
  }
}

// To the driver all of it is mapped slabs, which are of no context and no pool,
// and have handles. False: what it says holds.
bool SayFromBooks(const Question& question, CUpointer_attribute attribute,
                  void* data) {
  const Driver& driver = *Driver::Get();
  if (IsRange(attribute))
    return SayRange(driver, attribute, question.address, data);
  if (attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
    return Say(question.kind.handle_types, data);
  const auto block = TheMemory(driver).allocations().Find(question.address);
  return block.has_value() && SayOfBlock(driver, *block, attribute, data);
}

// Which addresses kernels can use depends on the current context. Where it is of
// another device than the memory, or is gone, the driver is asked.
bool IsCurrent(CUdevice device) {
  CUdevice current = 0;
  return Driver::Get()->cuCtxGetDevice(&current) == CUDA_SUCCESS &&
         current == device;
}

}  // namespace

void CorrectPointer(GatedPlace place, const uint64_t* words) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return;
  for (uint32_t i = 0; i < question->parts; ++i) {
    static_cast<void>(SayFromBooks(*question, question->AttributeOf(i),
                                   question->ResultOf(i)));
  }
}

void NotePointer(GatedPlace place, const uint64_t* words) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return;
  for (uint32_t i = 0; i < question->parts; ++i) {
    const CUpointer_attribute attribute = question->AttributeOf(i);
    TheAnswers().Note(question->form, question->kind, attribute,
                      question->address, [&](void* data) {
                        return AskDriver(place, question->address, attribute,
                                         data);
                      });
  }
}

bool AnswerPointer(GatedPlace place, const uint64_t* words, int* result) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return false;
  CUresult answer = CUDA_SUCCESS;
  for (uint32_t i = 0; i < question->parts; ++i) {
    const CUpointer_attribute attribute = question->AttributeOf(i);
    void* const data = question->ResultOf(i);
    if (IsRange(attribute) && SayFromBooks(*question, attribute, data))
      continue;
    if (attribute == CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
        !IsCurrent(question->kind.device)) {
      return false;
    }
    CUresult one = CUDA_SUCCESS;
    if (!TheAnswers().Say(question->form, question->kind, attribute,
                          question->address, data, &one)) {
      return false;
    }
    if (one != CUDA_SUCCESS) {
      answer = one;
    } else {
      static_cast<void>(SayFromBooks(*question, attribute, data));
    }
  }
  *result = answer;
  return true;
}

bool AnswerArgument(GatedPlace place, const uint64_t* words, int* result) {
  return place == k_cuPointerGetAttribute &&
         static_cast<uint32_t>(words[1]) ==
             CU_POINTER_ATTRIBUTE_DEVICE_POINTER &&
         AnswerPointer(place, words, result);
}

}  // namespace gmb::preload
