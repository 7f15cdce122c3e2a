#include "base/regular_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unique_fd.h"

namespace gmb::base {
namespace {

using ::testing::HasSubstr;

TEST(RegularFileTest, AFileIsOne) {
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto info = LookAtRegularFile(file.get(), "the program", "gmbd");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_GT(info->st_size, 0);
}

TEST(RegularFileTest, ADirectoryIsNone) {
  const UniqueFd directory(::open("/", O_RDONLY | O_CLOEXEC));
  const auto info = LookAtRegularFile(directory.get(), "the lock file", "/");
  EXPECT_EQ(info.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(info.status().message(),
              HasSubstr("the lock file is not a regular file"));
}

// Else its reader would look for a pipe that is not there.
TEST(RegularFileTest, WhatCannotBeLookedAtIsNotCalledIrregular) {
  const auto info = LookAtRegularFile(-1, "the database", "/d");
  EXPECT_THAT(info.status().message(),
              HasSubstr("cannot look at the database /d: Bad file"));
}

}  // namespace
}  // namespace gmb::base
