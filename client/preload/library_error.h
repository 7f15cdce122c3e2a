#ifndef GMB_CLIENT_PRELOAD_LIBRARY_ERROR_H_
#define GMB_CLIENT_PRELOAD_LIBRARY_ERROR_H_

#include <string>

#include "client/preload/broker_library.h"
#include "client/preload/broker_link.h"

namespace gmb::preload {

// An error of the library, freed at the end; null means success.
class LibraryError {
 public:
  explicit LibraryError(gmb_error* error) : error_(error) {}
  ~LibraryError() { BrokerLibrary::Get()->gmb_error_free(error_); }
  LibraryError(const LibraryError&) = delete;
  LibraryError& operator=(const LibraryError&) = delete;

  [[nodiscard]] bool ok() const { return error_ == nullptr; }
  [[nodiscard]] std::string message() const {
    return BrokerLibrary::Get()->gmb_error_message(error_);
  }
  [[nodiscard]] bool Is(int32_t reason) const {
    return !ok() && BrokerLibrary::Get()->gmb_error_reason(error_) == reason;
  }
  // Of what failed: `refused`, or that there is no broker. One that refuses is
  // there, also when it drains. UNAUTHENTICATED: the one that greeted is gone.
  [[nodiscard]] Outcome AsOutcome(Outcome refused) const {
    const auto reason = BrokerLibrary::Get()->gmb_error_reason(error_);
    if (reason != GMB_REASON_NONE && reason != GMB_REASON_NO_SESSION)
      return refused;
    switch (BrokerLibrary::Get()->gmb_error_code(error_)) {
      case GMB_CODE_UNAVAILABLE:
      case GMB_CODE_DEADLINE_EXCEEDED:
      case GMB_CODE_UNAUTHENTICATED:
      case GMB_CODE_UNIMPLEMENTED:
        return Outcome::kNoBroker;
      default:
        return refused;
    }
  }

 private:
  gmb_error* const error_;
};

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_LIBRARY_ERROR_H_
