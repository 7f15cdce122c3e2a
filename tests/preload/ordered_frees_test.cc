#include "client/preload/ordered_frees.h"

#include <utility>

#include "gtest/gtest.h"

namespace gmb::preload {
namespace {

CUresult answer_of_event = CUDA_SUCCESS;

// Of the driver only what is asked here.
Driver EventsThatAnswer(CUresult answer) {
  answer_of_event = answer;
  Driver driver;
  driver.cuEventQuery = [](CUevent) { return answer_of_event; };
  driver.cuStreamWaitEvent = [](CUstream, CUevent, unsigned) {
    return answer_of_event == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS
                                                   : answer_of_event;
  };
  return driver;
}

template <typename Handle>
Handle Named(intptr_t name) {
  return reinterpret_cast<Handle>(name);
}

OrderedFree Freed(intptr_t context) {
  OrderedFree freed;
  freed.block = {.start = 4096, .bytes = 512, .device = 0, .lease = {}};
  freed.stream = Named<CUstream>(7);
  freed.context = Named<CUcontext>(context);
  freed.event = Named<CUevent>(8);
  return freed;  // long ago
}

std::optional<OrderedFree> TakeFit(OrderedFrees* frees, CUresult answer) {
  return frees->TakeFit(EventsThatAnswer(answer), 0, 512, Named<CUstream>(7));
}

std::vector<OrderedFree> TakeOld(OrderedFrees* frees, CUresult answer) {
  return frees->TakeOld(EventsThatAnswer(answer),
                        std::chrono::steady_clock::now());
}

TEST(OrderedFreesTest, AnEventThatIsLostIsNoReasonToReuseNorToKeep) {
  for (const CUresult lost :
       {CUDA_ERROR_INVALID_HANDLE, CUDA_ERROR_CONTEXT_IS_DESTROYED}) {
    OrderedFrees frees;
    frees.Add(Freed(1));
    EXPECT_FALSE(TakeFit(&frees, lost).has_value());
    const auto old = TakeOld(&frees, lost);
    ASSERT_EQ(old.size(), 1U);
    EXPECT_EQ(old[0].event, nullptr) << "nobody is to touch it";
    EXPECT_TRUE(frees.TakeAll().empty());
  }
}

TEST(OrderedFreesTest, WorkThatIsNotDoneAndFailuresKeepIt) {
  for (const CUresult answer :
       {CUDA_ERROR_NOT_READY, CUDA_ERROR_ILLEGAL_ADDRESS}) {
    OrderedFrees frees;
    frees.Add(Freed(1));
    EXPECT_TRUE(TakeOld(&frees, answer).empty());
    EXPECT_EQ(TakeFit(&frees, answer).has_value(),
              answer == CUDA_ERROR_NOT_READY);
  }
}

TEST(OrderedFreesTest, ASurplusIsOfWhatIsDoneAndWasFreedBeforeAWait) {
  const auto take = [](PoolBytes surplus, uint64_t synchronisations,
                       CUresult answer) {
    OrderedFrees frees;
    for (const PoolName pool : {1, 2, 1, 1}) {
      OrderedFree freed = Freed(1);
      freed.block.pool = pool;
      freed.synchronisations = 7;
      frees.Add(freed);
    }
    return frees
        .TakeSurplus(EventsThatAnswer(answer), std::move(surplus),
                     synchronisations)
        .size();
  };
  const PoolBytes two_of_one = {{1, 2 * 512 + 511}, {2, 511}};
  EXPECT_EQ(take(two_of_one, 8, CUDA_SUCCESS), 2U);
  EXPECT_EQ(take(two_of_one, 7, CUDA_SUCCESS), 0U);
  EXPECT_EQ(take(two_of_one, 8, CUDA_ERROR_NOT_READY), 0U);
  EXPECT_EQ(take({{2, 512}}, 8, CUDA_SUCCESS), 1U);
}

TEST(OrderedFreesTest, WhatAnotherProcessHasIsNotHandedOutAgain) {
  for (const bool shared : {false, true}) {
    OrderedFrees frees;
    OrderedFree freed = Freed(1);
    freed.block.lease = {.start = 4096, .bytes = 512, .shared = shared};
    frees.Add(freed);
    EXPECT_EQ(TakeFit(&frees, CUDA_SUCCESS).has_value(), !shared);
    EXPECT_EQ(TakeOld(&frees, CUDA_SUCCESS).size(), shared ? 1U : 0U);
  }
}

TEST(OrderedFreesTest, AContextsAreTakenAndOthersStay) {
  OrderedFrees frees;
  for (const intptr_t context : {1, 2, 1}) frees.Add(Freed(context));
  EXPECT_EQ(frees.TakeOf(Named<CUcontext>(1)).size(), 2U);
  EXPECT_EQ(frees.TakeOf(Named<CUcontext>(1)).size(), 0U);
  ASSERT_EQ(TakeOld(&frees, CUDA_SUCCESS).size(), 1U);
}

}  // namespace
}  // namespace gmb::preload
