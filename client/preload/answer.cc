// `gmb run`: what the broker said, as the driver would say it.
#include "client/preload/answer.h"

#include "client/preload/settings.h"

namespace gmb::preload {

// Without a broker CUDA has a word of its own: a daemon that it needs is not
// there (cudaErrorSystemNotReady).
Answer AnswerOf(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return CUDA_SUCCESS;
    case Outcome::kNoMemory:
    case Outcome::kNotMapped:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Outcome::kNoBroker:
      if (TheSettings().native_without_broker) return std::nullopt;
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kTurnedAway:  // the fallback is not a way past a refusal
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kNotOffered:
      break;
  }
  return std::nullopt;
}

CUresult SharingResult(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return CUDA_SUCCESS;
    case Outcome::kNoMemory:
    case Outcome::kNotMapped:
      return CUDA_ERROR_OUT_OF_MEMORY;
    case Outcome::kNoBroker:
    case Outcome::kTurnedAway:
      return CUDA_ERROR_SYSTEM_NOT_READY;
    case Outcome::kNotOffered:
      break;
  }
  return CUDA_ERROR_NOT_SUPPORTED;
}

}  // namespace gmb::preload
