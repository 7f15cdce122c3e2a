#ifndef GMB_DEVICE_HOSTPOOL_POOL_MAPPING_H_
#define GMB_DEVICE_HOSTPOOL_POOL_MAPPING_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "device/hostpool/host_extent.h"

namespace gmb::device {

// The kind of a mapping's pages. Larger ones are touched, page-locked and given
// back several times faster; copies run at the same speed with each.
enum class PageKind {
  kHugetlb,      // reserved beforehand by the operator (vm.nr_hugepages)
  kTransparent,  // asked for; the kernel gives them where it can
  kSmall,
};
[[nodiscard]] const char* PageKindName(PageKind kind);

// Which pages a mapping may take: those too that the operator reserved, for it
// or for somebody else.
enum class PageSource { kAny, kOrdinary };

// Host memory of a fixed size for the host pool: a memfd, so that a process
// without anything else can hold it across a restart of its owner. Sealed
// against growing and shrinking, kept out of core dumps, not inherited by fork.
// Its pages come into use when Populate (or a copy) first touches them.
class PoolMapping {
 public:
  // `bytes` is a positive multiple of the pool's granularity. The best kind of
  // page that the machine has is taken.
  //   FAILED_PRECONDITION  more than the machine, or this process's control
  //                        group, has available; the message says what to do
  //   RESOURCE_EXHAUSTED   no addresses or memory for the mapping itself
  [[nodiscard]] static absl::StatusOr<PoolMapping> Create(
      uint64_t bytes, PageSource source = PageSource::kAny);

  // The memory of a mapping that another process made and that was kept: what
  // is in it stays. INVALID_ARGUMENT when it is no sealed memfd of exactly
  // `bytes`.
  [[nodiscard]] static absl::StatusOr<PoolMapping> Adopt(base::UniqueFd memfd,
                                                         uint64_t bytes);

  PoolMapping(PoolMapping&& other) noexcept;
  PoolMapping& operator=(PoolMapping&&) = delete;
  PoolMapping(const PoolMapping&) = delete;
  ~PoolMapping();

  [[nodiscard]] char* data() const { return start_; }
  [[nodiscard]] uint64_t size_bytes() const { return bytes_; }
  [[nodiscard]] PageKind page_kind() const { return kind_; }
  // Of the memory itself, for a process that keeps it.
  [[nodiscard]] int fd() const { return memfd_.get(); }
  // Why the pages are not larger; empty when they are.
  [[nodiscard]] const std::string& page_note() const { return note_; }

  // Whether pages of a piece are in use: all of them where a kept one has
  // contents, some where a process ended while it prepared the piece.
  enum class InUse { kNone, kSome, kAll };
  [[nodiscard]] InUse InUseOf(const HostExtent& piece) const;

  // Brings the pages of a piece into use and keeps what they hold. Thread-safe
  // for pieces that do not overlap. RESOURCE_EXHAUSTED when the machine has no
  // memory left for them: the piece must not be touched then.
  [[nodiscard]] absl::Status Populate(const HostExtent& piece) const;

  // Gives the pages of a piece back to the machine, and what they hold with
  // them. A kernel that cannot leaves them in use.
  void GiveBack(const HostExtent& piece) const;

 private:
  PoolMapping(base::UniqueFd memfd, char* start, uint64_t bytes, PageKind kind,
              std::string note)
      : memfd_(std::move(memfd)),
        start_(start),
        bytes_(bytes),
        kind_(kind),
        note_(std::move(note)) {}

  // With the largest pages that the kernel gives where none are reserved.
  static PoolMapping OfOrdinaryPages(base::UniqueFd memfd, char* start,
                                     uint64_t bytes);

  base::UniqueFd memfd_;
  char* start_;
  uint64_t bytes_;
  PageKind kind_;
  std::string note_;
};

}  // namespace gmb::device

#endif  // GMB_DEVICE_HOSTPOOL_POOL_MAPPING_H_
