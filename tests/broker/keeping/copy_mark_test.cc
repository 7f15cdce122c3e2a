// A mark that one broker leaves and the next one reads.
#include "broker/keeping/copy_mark.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

namespace gmb::broker {
namespace {

SharedFd KeptOf(int fd) {
  return Share(base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 0)));
}

TEST(CopyMarkTest, TheNextBrokerReadsIt) {
  auto mark = CopyMark::Create();
  ASSERT_TRUE(mark.ok()) << mark.status();
  const SharedFd kept = KeptOf((*mark)->fd());
  EXPECT_EQ(CopyMark::ReadFrom(kept), 0u);
  (*mark)->SetDiedOf(77);
  mark->reset();
  EXPECT_EQ(CopyMark::ReadFrom(kept), 77u);
}

TEST(CopyMarkTest, OtherMemoryNamesNoLease) {
  EXPECT_EQ(CopyMark::ReadFrom(nullptr), 0u);
  const SharedFd other =
      Share(base::UniqueFd(::memfd_create("other", MFD_CLOEXEC)));
  EXPECT_EQ(CopyMark::ReadFrom(other), 0u) << "it is empty";
  const std::array<uint64_t, 2> words = {1, 77};
  ASSERT_EQ(::pwrite(other->get(), words.data(), sizeof(words), 0),
            static_cast<ssize_t>(sizeof(words)));
  EXPECT_EQ(CopyMark::ReadFrom(other), 0u);
}

}  // namespace
}  // namespace gmb::broker
