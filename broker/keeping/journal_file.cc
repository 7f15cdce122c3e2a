// The journal between two brokers: memory that outlives both.
#include "broker/keeping/journal_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "ipc/random.h"

namespace gmb::broker {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
constexpr size_t kIdBytes = 16;

}  // namespace

absl::StatusOr<JournalFile> JournalFile::Create(uint32_t slots) {
  if (slots == 0 || slots > kMostJournalSlots) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a journal has 1 to ", kMostJournalSlots, " records, not ", slots));
  }
  GMB_ASSIGN_OR_RETURN(const std::string id, ipc::RandomToken(kIdBytes));
  base::UniqueFd fd(
      ::memfd_create("gmb-journal", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid())
    return absl::ErrnoToStatus(errno, "cannot make the journal's memory");
  const size_t bytes = JournalBytes(slots);
  if (const int error =
          ::posix_fallocate(fd.get(), 0, static_cast<off_t>(bytes));
      error != 0) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "no memory for the journal: ", bytes,
        " bytes: ", absl::ErrnoToStatus(error, "posix_fallocate").message()));
  }
  if (::fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0)
    return absl::ErrnoToStatus(errno, "cannot seal the journal");
  GMB_ASSIGN_OR_RETURN(JournalFile journal, Map(std::move(fd), bytes));
  FormatJournal(id, slots, journal.memory_);
  journal.is_new_ = true;
  return journal;
}

absl::StatusOr<size_t> JournalSizeOf(int fd) {
  const int seals = ::fcntl(fd, F_GET_SEALS);
  // Else an access could fault, once somebody has made it shorter.
  if (seals < 0 || (seals & kSeals) != kSeals) {
    return absl::InvalidArgumentError(
        "no journal: it is no memory of a fixed size");
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0)
    return absl::ErrnoToStatus(errno, "cannot look at the journal");
  if (info.st_size < static_cast<off_t>(kJournalHeaderBytes)) {
    return absl::InvalidArgumentError(
        absl::StrCat("no journal: it has ", info.st_size, " bytes"));
  }
  return static_cast<size_t>(info.st_size);
}

absl::StatusOr<JournalFile> JournalFile::Adopt(base::UniqueFd fd) {
  GMB_ASSIGN_OR_RETURN(const size_t bytes, JournalSizeOf(fd.get()));
  return Map(std::move(fd), bytes);
}

absl::StatusOr<JournalFile> JournalFile::Map(base::UniqueFd fd, size_t bytes) {
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED)
    return absl::ErrnoToStatus(errno, "cannot map the journal");
  ::madvise(memory, bytes, MADV_DONTFORK);
  ::madvise(memory, bytes, MADV_DONTDUMP);
  return JournalFile(std::move(fd), static_cast<char*>(memory), bytes);
}

JournalFile::~JournalFile() {
  if (memory_ != nullptr) ::munmap(memory_, bytes_);
}

}  // namespace gmb::broker
