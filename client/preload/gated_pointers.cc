// `gmb run`: cuPointerGetAttribute and cuPointerGetAttributes of leased memory.
// Nobody's gigabytes come back for a question.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

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
  std::vector<std::pair<CUpointer_attribute, void*>> parts;
};

PointerAnswers& TheAnswers() {
  static PointerAnswers& answers = *new PointerAnswers;
  return answers;
}

// Nothing for one that the driver is to refuse.
std::optional<Question> Read(GatedPlace place, const uint64_t* words) {
  Question question;
  if (place == k_cuPointerGetAttribute) {
    question.address = words[2];
    question.parts.emplace_back(
        static_cast<CUpointer_attribute>(static_cast<uint32_t>(words[1])),
        reinterpret_cast<void*>(words[0]));
  } else {
    question.form = Form::kMany;
    question.address = words[3];
    const auto* const attributes =
        reinterpret_cast<const CUpointer_attribute*>(words[1]);
    void* const* const data = reinterpret_cast<void* const*>(words[2]);
    const auto count = static_cast<uint32_t>(words[0]);
    if (attributes == nullptr || data == nullptr || count > kMostAttributes)
      return std::nullopt;
    for (uint32_t i = 0; i < count; ++i)
      question.parts.emplace_back(attributes[i], data[i]);
  }
  const bool complete =
      std::all_of(question.parts.begin(), question.parts.end(),
                  [](const auto& part) { return part.second != nullptr; });
  const Driver* const driver = Driver::Get();
  if (!complete || driver == nullptr || InForkedChild()) return std::nullopt;
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

// Where an allocation begins and how long it is, and whether another process can
// open it (a boolean, of which the driver has written as many bytes as it has).
// False: what the driver says holds.
bool SayFromBooks(CUpointer_attribute attribute, CUdeviceptr address,
                  void* data) {
  const Driver& driver = *Driver::Get();
  Allocations& allocations = TheMemory(driver).allocations();
  CUdeviceptr start = 0;
  size_t bytes = 0;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      if (!allocations.GetAddressRange(address, &start, &bytes) &&
          !TheIpcMemory(driver).GetAddressRange(address, &start, &bytes)) {
        return false;
      }
      if (attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE) {
        std::memcpy(data, &bytes, sizeof(bytes));
      } else {
        std::memcpy(data, &start, sizeof(start));
      }
      return true;
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      if (const auto block = allocations.Find(address)) {
        *static_cast<unsigned char*>(data) = block->pool == kNoPool ? 1 : 0;
        return true;
      }
      return false;
    default:
      return false;
  }
}

bool IsRange(CUpointer_attribute attribute) {
  return attribute == CU_POINTER_ATTRIBUTE_RANGE_START_ADDR ||
         attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE;
}

}  // namespace

void CorrectPointer(GatedPlace place, const uint64_t* words) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return;
  for (const auto& [attribute, data] : question->parts)
    static_cast<void>(SayFromBooks(attribute, question->address, data));
}

void NotePointer(GatedPlace place, const uint64_t* words) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return;
  for (const auto& part : question->parts) {
    const CUpointer_attribute attribute = part.first;
    TheAnswers().Note(
        question->form, question->kind, attribute, [&](void* data) {
          return AskDriver(place, question->address, attribute, data);
        });
  }
}

bool AnswerPointer(GatedPlace place, const uint64_t* words, int* result) {
  const std::optional<Question> question = Read(place, words);
  if (!question.has_value()) return false;
  CUresult answer = CUDA_SUCCESS;
  for (const auto& [attribute, data] : question->parts) {
    if (IsRange(attribute) &&
        SayFromBooks(attribute, question->address, data)) {
      continue;
    }
    CUresult one = CUDA_SUCCESS;
    if (!TheAnswers().Say(question->form, question->kind, attribute,
                          question->address, data, &one)) {
      return false;
    }
    if (one != CUDA_SUCCESS) {
      answer = one;
    } else {
      static_cast<void>(SayFromBooks(attribute, question->address, data));
    }
  }
  *result = answer;
  return true;
}

}  // namespace gmb::preload
