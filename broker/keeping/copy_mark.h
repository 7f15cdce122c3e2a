#ifndef GMB_BROKER_KEEPING_COPY_MARK_H_
#define GMB_BROKER_KEEPING_COPY_MARK_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "base/unique_fd.h"
#include "broker/keeping/keeper_client.h"

namespace gmb::broker {

// Which lease was being copied when a memory error ended the broker, in memory
// that outlives it: copied again, it would end the next one too.
class CopyMark {
 public:
  // Its name in the keeper.
  static constexpr absl::string_view kKey = "copy";

  static absl::StatusOr<std::unique_ptr<CopyMark>> Create();
  // The lease that is named in what the last broker has left; 0: none is, or it
  // is no such memory.
  [[nodiscard]] static uint64_t ReadFrom(const SharedFd& last);

  ~CopyMark();
  CopyMark(const CopyMark&) = delete;
  CopyMark& operator=(const CopyMark&) = delete;

  // One store to memory: for use in a handler of signals.
  void SetDiedOf(uint64_t lease) {
    lease_->store(lease, std::memory_order_release);
  }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  CopyMark(base::UniqueFd fd, void* memory);

  const base::UniqueFd fd_;
  std::atomic<uint64_t>* const lease_;  // in the memory
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_COPY_MARK_H_
