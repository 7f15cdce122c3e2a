#include "tests/preload/program_pointers.h"

#include <cstdio>

std::string PointerSteps::TextOf(CUcontext context, CUmemoryPool pool,
                                 unsigned long long types) const {
  CUcontext primary = nullptr;
  api_.cuDevicePrimaryCtxRetain_(&primary, 0);
  std::string text = context == nullptr   ? "none"
                     : context == primary ? "primary"
                     : context == own_    ? "own"
                                          : "another";
  std::string name_of_pool = pool == nullptr ? "none" : "another";
  for (const auto& [name, handle] : pools_) {
    if (handle == pool) name_of_pool = name;
  }
  return text + " " + name_of_pool + " " + std::to_string(types);
}

bool PointerSteps::Do(const std::vector<std::string>& words) {
  if (words[0] != "of") return false;
  const CUdeviceptr at = memory_[words[1]] + 8;
  CUpointer_attribute attributes[] = {
      CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE,
      CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES};
  std::string texts[2];
  for (std::string& text : texts) {
    CUcontext context = nullptr;
    CUmemoryPool pool = nullptr;
    unsigned long long types = ~0ULL;
    void* data[] = {&context, &pool, &types};
    CUresult result = CUDA_SUCCESS;
    if (&text == texts) {
      for (size_t i = 0; i < 3 && result == CUDA_SUCCESS; ++i)
        result = api_.cuPointerGetAttribute_(data[i], attributes[i], at);
    } else {
      result = api_.cuPointerGetAttributes_(3, attributes, data, at);
    }
    text = std::to_string(result) + " " + TextOf(context, pool, types);
  }
  std::printf("of %s %s%s%s\n", words[1].c_str(), texts[0].c_str(),
              texts[0] == texts[1] ? "" : " twice ",
              texts[0] == texts[1] ? "" : texts[1].c_str());
  return true;
}
