#include "client/preload/pointer_answers.h"

#include <cstring>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

using Form = PointerAnswers::Form;

// A driver that writes so many bytes.
PointerAnswers::Ask Writes(CUresult result, uint64_t value, size_t bytes,
                           int* asked = nullptr) {
  return [=](void* data) {
    if (asked != nullptr) ++*asked;
    std::memcpy(data, &value, bytes);
    return result;
  };
}

TEST(PointerAnswersTest, WhatWasNotedIsSaidAndNoByteMore) {
  PointerAnswers answers;
  int asked = 0;
  for (int i = 0; i < 2; ++i) {
    answers.Note(Form::kOne, PointerKind{0}, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                 9, Writes(CUDA_SUCCESS, 2, 4, &asked));
  }
  EXPECT_EQ(asked, 2) << "once, in two ways";
  uint64_t data = ~uint64_t{0};
  CUresult result = CUDA_ERROR_UNKNOWN;
  ASSERT_TRUE(answers.Say(Form::kOne, PointerKind{0},
                          CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9, &data, &result));
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(data, 0xFFFFFFFF00000002);
}

TEST(PointerAnswersTest, MemoryThatIsMappedWithOtherAccessIsOfAnotherKind) {
  const auto of = [](int device, CUmemAccess_flags flags) {
    CUmemAccessDesc access{};
    access.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    access.flags = flags;
    return access;
  };
  const auto mine = of(0, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
  const PointerKind kind{0, AccessKey({mine})};
  EXPECT_EQ(AccessKey({mine}), AccessKey({mine}));
  PointerAnswers answers;
  answers.Note(Form::kOne, kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9,
               Writes(CUDA_SUCCESS, 2, 4));
  uint64_t data = 0;
  CUresult result = CUDA_SUCCESS;
  const auto says = [&](const PointerKind& other) {
    return answers.Say(Form::kOne, other, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9,
                       &data, &result);
  };
  EXPECT_TRUE(says(kind));
  EXPECT_FALSE(says(PointerKind{0}));
  EXPECT_FALSE(says({1, AccessKey({mine})}));
  for (const auto& access : std::vector<std::vector<CUmemAccessDesc>>{
           {},
           {of(0, CU_MEM_ACCESS_FLAGS_PROT_READ)},
           {of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)},
           {mine, of(1, CU_MEM_ACCESS_FLAGS_PROT_READWRITE)}}) {
    EXPECT_FALSE(says({0, AccessKey(access)}));
  }
}

// The context that asked could not use the memory, or had ended.
TEST(PointerAnswersTest, ADeviceAddressIsNotedOnlyWhereKernelsCanUseIt) {
  constexpr auto kAddress = CU_POINTER_ATTRIBUTE_DEVICE_POINTER;
  PointerAnswers answers;
  uint64_t data = 0;
  CUresult result = CUDA_ERROR_UNKNOWN;
  const auto says = [&](Form form) {
    return answers.Say(form, PointerKind{0}, kAddress, 0x2008, &data, &result);
  };
  answers.Note(Form::kOne, PointerKind{0}, kAddress, 0x1000,
               Writes(CUDA_ERROR_INVALID_VALUE, 0, 0));
  answers.Note(Form::kOne, PointerKind{0}, kAddress, 0x1000,
               Writes(CUDA_ERROR_INVALID_CONTEXT, 0x1000, 8));
  answers.Note(Form::kMany, PointerKind{0}, kAddress, 0x1000,
               Writes(CUDA_SUCCESS, 0, 8));
  EXPECT_FALSE(says(Form::kOne));
  EXPECT_FALSE(says(Form::kMany));
  answers.Note(Form::kOne, PointerKind{0}, kAddress, 0x1000,
               Writes(CUDA_SUCCESS, 0x1000, 8));
  EXPECT_TRUE(says(Form::kOne));
  EXPECT_EQ(result, CUDA_SUCCESS);
  EXPECT_EQ(data, 0x2008u);
}

TEST(PointerAnswersTest, AnErrorIsSaidWithoutWriting) {
  PointerAnswers answers;
  answers.Note(Form::kOne, PointerKind{0}, CU_POINTER_ATTRIBUTE_HOST_POINTER, 9,
               Writes(CUDA_ERROR_INVALID_VALUE, 0, 0));
  uint64_t data = 7;
  CUresult result = CUDA_SUCCESS;
  ASSERT_TRUE(answers.Say(Form::kOne, PointerKind{0},
                          CU_POINTER_ATTRIBUTE_HOST_POINTER, 9, &data,
                          &result));
  EXPECT_EQ(result, CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(data, 7u);
}

TEST(PointerAnswersTest, AnAddressIsTheOneThatIsAskedAbout) {
  PointerAnswers answers;
  answers.Note(Form::kMany, PointerKind{0}, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
               0x1000, Writes(CUDA_SUCCESS, 0x1000, 8));
  uint64_t data = 0;
  CUresult result = CUDA_ERROR_UNKNOWN;
  ASSERT_TRUE(answers.Say(Form::kMany, PointerKind{0},
                          CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 0x2468, &data,
                          &result));
  EXPECT_EQ(data, 0x2468u);
}

TEST(PointerAnswersTest, WhatIsNotKnownIsNotSaid) {
  PointerAnswers answers;
  answers.Note(Form::kOne, PointerKind{0}, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9,
               Writes(CUDA_SUCCESS, 2, 4));
  int asked = 0;
  for (const auto of_one_lease :
       {CU_POINTER_ATTRIBUTE_BUFFER_ID, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_P2P_TOKENS, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS}) {
    answers.Note(Form::kOne, PointerKind{0}, of_one_lease, 9,
                 Writes(CUDA_SUCCESS, 2, 8, &asked));
  }
  EXPECT_EQ(asked, 0);
  uint64_t data = 7;
  CUresult result = CUDA_SUCCESS;
  EXPECT_FALSE(answers.Say(Form::kMany, PointerKind{0},
                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9, &data,
                           &result));
  EXPECT_FALSE(answers.Say(Form::kOne, PointerKind{1},
                           CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 9, &data,
                           &result));
  EXPECT_FALSE(answers.Say(Form::kOne, PointerKind{0},
                           CU_POINTER_ATTRIBUTE_BUFFER_ID, 9, &data, &result));
  EXPECT_EQ(data, 7u);
}

}  // namespace
}  // namespace gmb::preload
