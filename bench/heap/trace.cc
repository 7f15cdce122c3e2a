#include "bench/heap/trace.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace gmb::bench {
namespace {

constexpr char kFirstLine[] = "# gmb allocation trace 1";
constexpr uint64_t kMostStreams = 1024;

struct Block {
  uint64_t bytes;
  uint64_t stream;
  bool live;
};

// Digits alone: SimpleAtoi takes signs and spaces.
bool ReadNumber(const std::string& word, uint64_t* number) {
  return word.find_first_not_of("0123456789") == std::string::npos &&
         absl::SimpleAtoi(word, number);
}

// A file's text, compressed with gzip or as it stands; nullopt if it cannot be
// read to its end.
std::optional<std::string> ReadText(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (file == nullptr) return std::nullopt;
  std::string text;
  std::array<char, 65536> piece;
  int bytes = 0;
  while ((bytes = gzread(file, piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<size_t>(bytes));
  // A compressed file that was cut off is only told of when it is closed.
  const bool whole = gzclose_r(file) == Z_OK && bytes == 0;
  return whole ? std::optional(std::move(text)) : std::nullopt;
}

class Reader {
 public:
  explicit Reader(Trace* trace) : trace_(trace) {}

  absl::Status Read(const std::string& line) {
    const std::vector<std::string> words =
        absl::StrSplit(line, ' ', absl::SkipEmpty());
    uint64_t number = 0;
    uint64_t stream = 0;
    const bool says_stream = words.size() == 3;
    if (words.size() < 2 || words.size() > 3 ||
        (words[0] != "+" && words[0] != "-") ||
        !ReadNumber(words[1], &number) ||
        (says_stream && !ReadNumber(words[2], &stream))) {
      return Wrong("not understood", line);
    }
    if (stream >= kMostStreams) {
      return Wrong(absl::StrCat("streams are below ", kMostStreams), line);
    }
    if (words[0] == "+") {
      if (number > std::numeric_limits<uint64_t>::max() - live_bytes_)
        return Wrong("more is live than 64 bits can count", line);
      return Allocate(number, stream);
    }
    if (number >= blocks_.size() || !blocks_[number].live)
      return Wrong("no such block is live", line);
    return Free(number, says_stream ? stream : blocks_[number].stream);
  }

 private:
  static absl::Status Wrong(absl::string_view what, const std::string& line) {
    return absl::InvalidArgumentError(absl::StrCat(what, ": ", line));
  }
  absl::Status Allocate(uint64_t bytes, uint64_t stream) {
    trace_->events.push_back({true, blocks_.size(), bytes, stream});
    trace_->streams = std::max(trace_->streams, stream + 1);
    trace_->blocks = blocks_.size() + 1;
    blocks_.push_back({bytes, stream, true});
    live_bytes_ += bytes;
    trace_->peak_bytes = std::max(trace_->peak_bytes, live_bytes_);
    return absl::OkStatus();
  }
  absl::Status Free(uint64_t block, uint64_t stream) {
    trace_->events.push_back({false, block, blocks_[block].bytes, stream});
    trace_->streams = std::max(trace_->streams, stream + 1);
    blocks_[block].live = false;
    live_bytes_ -= blocks_[block].bytes;
    return absl::OkStatus();
  }

  Trace* const trace_;
  std::vector<Block> blocks_;
  uint64_t live_bytes_ = 0;
};

}  // namespace

absl::StatusOr<Trace> ReadTrace(const std::string& path) {
  std::istringstream file(ReadText(path).value_or(""));
  std::string line;
  if (!std::getline(file, line) || line != kFirstLine) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": cannot be read, or does not begin with \"", kFirstLine, "\""));
  }
  Trace trace;
  trace.name = std::string(
      absl::StripSuffix(path.substr(path.find_last_of('/') + 1), ".gz"));
  Reader reader(&trace);
  for (int number = 2; std::getline(file, line); ++number) {
    if (absl::StartsWith(line, "# source: ")) trace.source = line.substr(10);
    if (line.empty() || line[0] == '#') continue;
    if (absl::Status read = reader.Read(line); !read.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", read.message()));
    }
  }
  if (trace.events.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no events"));
  }
  return trace;
}

}  // namespace gmb::bench
