#ifndef GMB_BROKER_KEEPING_JOURNAL_FILE_H_
#define GMB_BROKER_KEEPING_JOURNAL_FILE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "broker/keeping/journal_format.h"

namespace gmb::broker {

// The journal's memory: a memfd, mapped. The keeper has the fd, so that it
// lives exactly as long as what it describes. Move-only. Not inherited by
// forked children, and kept out of core dumps: it has tokens.
class JournalFile {
 public:
  // A new, empty one. All of its memory is there from the start, so that no
  // store can fail. RESOURCE_EXHAUSTED: the system has none.
  static absl::StatusOr<JournalFile> Create(uint32_t slots);

  // One that a keeper had; its writer is dead. INVALID_ARGUMENT unless it is a
  // memfd that nobody can shrink or grow. ReadJournal reads its contents.
  static absl::StatusOr<JournalFile> Adopt(base::UniqueFd fd);

  JournalFile(JournalFile&& other) noexcept
      : fd_(std::move(other.fd_)),
        memory_(std::exchange(other.memory_, nullptr)),
        bytes_(other.bytes_),
        is_new_(other.is_new_) {}
  JournalFile& operator=(JournalFile&&) = delete;
  ~JournalFile();

  [[nodiscard]] absl::StatusOr<JournalContents> Read() const {
    return ReadJournal({memory_, bytes_});
  }
  // The same, and quick where Create has made it and nobody has written to it.
  [[nodiscard]] absl::StatusOr<JournalContents> ReadAtBegin() const {
    return is_new_ ? ReadUnwrittenJournal({memory_, bytes_}) : Read();
  }
  // For a JournalWriter.
  [[nodiscard]] char* memory() const { return memory_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  JournalFile(base::UniqueFd fd, char* memory, size_t bytes)
      : fd_(std::move(fd)), memory_(memory), bytes_(bytes) {}
  static absl::StatusOr<JournalFile> Map(base::UniqueFd fd, size_t bytes);

  base::UniqueFd fd_;
  char* memory_;
  size_t bytes_;
  bool is_new_ = false;
};

// How long the journal in this memory is. INVALID_ARGUMENT unless it is a memfd
// that nobody can shrink or grow, and that has room for a header.
[[nodiscard]] absl::StatusOr<size_t> JournalSizeOf(int fd);

}  // namespace gmb::broker

#endif  // GMB_BROKER_KEEPING_JOURNAL_FILE_H_
