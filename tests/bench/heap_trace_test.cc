#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/heap/trace.h"
#include "tests/ipc/temporary_directory.h"

namespace gmb::bench {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] = "# gmb allocation trace 1\n";

class HeapTraceTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::string Path() const { return directory_.File("x.trace"); }
  absl::StatusOr<Trace> Read(const std::string& text) const {
    std::ofstream(Path(), std::ios::binary) << text;
    return ReadTrace(Path());
  }
  void ExpectRefused(const std::string& text, const std::string& what) const {
    const absl::StatusOr<Trace> trace = Read(text);
    ASSERT_EQ(trace.status().code(), absl::StatusCode::kInvalidArgument)
        << "taken: " << text;
    EXPECT_THAT(std::string(trace.status().message()),
                HasSubstr(absl::StrCat(Path(), what)));
  }

  const testing::TemporaryDirectory directory_;
};

TEST_F(HeapTraceTest, BlocksAreFreedInAnyOrderAndNeedNotBe) {
  const absl::StatusOr<Trace> trace =
      Read(absl::StrCat(kHeader,
                        "# source: a test\n+ 100\n+ 200 3\n# a comment\n\n"
                        "+ 0\n- 1\n- 0 2\n+ 50"));
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->name, "x.trace");
  EXPECT_EQ(trace->source, "a test");
  EXPECT_EQ(trace->blocks, 4);
  EXPECT_EQ(trace->streams, 4);
  EXPECT_EQ(trace->peak_bytes, 300);
  ASSERT_EQ(trace->events.size(), 6);
  const Trace::Event& second = trace->events[3];
  EXPECT_FALSE(second.allocates);
  EXPECT_EQ(second.block, 1);
  EXPECT_EQ(second.bytes, 200);
  EXPECT_EQ(second.stream, 3) << "the stream of its allocation";
  EXPECT_EQ(trace->events[4].stream, 2) << "the one that is said";
}

TEST_F(HeapTraceTest, WhatIsNoTraceIsRefused) {
  for (const std::string text :
       {"", "+ 100\n", "# gmb allocation trace 2\n+ 100\n",
        "# gmb allocation trace 1\r\n+ 100\r\n"}) {
    ExpectRefused(text, ": cannot be read, or does not begin with");
  }
  ExpectRefused(kHeader, ": has no events");
  EXPECT_THAT(
      std::string(ReadTrace(directory_.File("none")).status().message()),
      HasSubstr("none: cannot be read"));
  EXPECT_FALSE(ReadTrace(directory_.path()).ok()) << "a folder";
}

TEST_F(HeapTraceTest, AWrongLineIsNamed) {
  for (const std::string line :
       {"+", "-", "* 4", "alloc 4", "+ 4 0 0", "+ x", "+ -4", "+ 1.5", "- -1",
        "+ 99999999999999999999", "+ 4 -1", "+ 4 x", "+ +5", "+ 4\t", "+\t4",
        "+ 4 99999999999999999999"}) {
    ExpectRefused(absl::StrCat(kHeader, "+ 1\n", line, "\n+ 2\n"),
                  absl::StrCat(":3: not understood: ", line));
  }
  ExpectRefused(absl::StrCat(kHeader, "+ 4 1024\n"),
                ":2: streams are below 1024: + 4 1024");
}

TEST_F(HeapTraceTest, OnlyALiveBlockCanBeFreed) {
  ExpectRefused(absl::StrCat(kHeader, "- 0\n+ 1\n"),
                ":2: no such block is live: - 0");
  ExpectRefused(absl::StrCat(kHeader, "+ 1\n- 0\n- 0\n"),
                ":4: no such block is live: - 0");
}

TEST_F(HeapTraceTest, BytesThatDoNotFitAreRefused) {
  ExpectRefused(absl::StrCat(kHeader, "+ 18446744073709551615\n+ 1\n"),
                ":3: more is live than 64 bits can count: + 1");
}

TEST_F(HeapTraceTest, EveryTraceOfTheRepositoryIsRead) {
  int traces = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GMB_TRACES)) {
    if (!absl::EndsWith(entry.path().string(), ".trace.gz")) continue;
    const absl::StatusOr<Trace> trace = ReadTrace(entry.path().string());
    EXPECT_TRUE(trace.ok()) << trace.status();
    ++traces;
  }
  EXPECT_GE(traces, 4);
}

TEST_F(HeapTraceTest, ACompressedTraceIsReadToItsEndOrRefused) {
  const std::string packed = directory_.File("packed.trace.gz");
  const gzFile file = gzopen(packed.c_str(), "wb");
  ASSERT_NE(file, nullptr);
  const std::string text = absl::StrCat(kHeader, "+ 100\n- 0\n");
  ASSERT_EQ(gzwrite(file, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  ASSERT_EQ(gzclose(file), Z_OK);
  const absl::StatusOr<Trace> trace = ReadTrace(packed);
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(trace->name, "packed.trace");
  EXPECT_EQ(trace->events.size(), 2);

  for (uint64_t cut : {1, 8, 20}) {
    std::filesystem::resize_file(packed,
                                 std::filesystem::file_size(packed) - cut);
    EXPECT_THAT(std::string(ReadTrace(packed).status().message()),
                HasSubstr("packed.trace.gz: cannot be read"))
        << "cut off";
  }
}

}  // namespace
}  // namespace gmb::bench
