// A pool as a bar.
#include "client/cli/views/pool_bar.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"

namespace gmb::cli {
namespace {

// Characters for each part: to scale, at least one where there are bytes, in
// all `columns` if there are any bytes. The largest part takes the error of
// rounding.
std::vector<int> Scale(const std::vector<PoolPart>& parts, int columns) {
  double whole = 0;
  for (const PoolPart& part : parts) whole += static_cast<double>(part.bytes);
  std::vector<int> widths(parts.size(), 0);
  if (whole <= 0) return widths;
  int used = 0;
  size_t largest = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts[i].bytes == 0) continue;
    const double exact =
        columns * (static_cast<double>(parts[i].bytes) / whole);
    widths[i] = std::max(1, static_cast<int>(std::lround(exact)));
    used += widths[i];
    if (parts[i].bytes > parts[largest].bytes) largest = i;
  }
  widths[largest] = std::max(1, widths[largest] + columns - used);
  return widths;
}

}  // namespace

std::vector<PoolPart> PartsOf(const v1::PoolStatus& pool) {
  return {
      {"granted", pool.granted_bytes(), "held by leases", Tone::kAccent, "█",
       '#'},
      {"returned", pool.returned_bytes(),
       "given back, kept a while for the same tenant", Tone::kPlain, "▓", '%'},
      {"ready", pool.ready_bytes(), "slabs made ahead of need", Tone::kGood,
       "▒", '='},
      {"float", pool.float_bytes(), "not allocated, for odd sizes",
       Tone::kFaint, "░", '.'},
      {"scrubbing", pool.scrubbing_bytes(), "being destroyed and cleared",
       Tone::kPlain, "▚", '~'},
      {"unreturned", pool.unreturned_bytes(),
       "given back but still held by a client", Tone::kWarning, "▞", '!'},
      {"missing", pool.missing_bytes(),
       "taken past the broker, or kept by deleted tenants", Tone::kBad, "×",
       'x'},
  };
}

std::string PoolBar(const v1::PoolStatus& pool, int columns,
                    const Terminal& terminal) {
  const std::vector<PoolPart> parts = PartsOf(pool);
  const std::vector<int> widths = Scale(parts, columns);
  std::string bar;
  int drawn = 0;
  for (size_t i = 0; i < parts.size(); ++i) {
    std::string blocks;
    for (int column = 0; column < widths[i]; ++column) {
      blocks += terminal.unicode ? std::string(parts[i].block)
                                 : std::string(1, parts[i].ascii_block);
    }
    absl::StrAppend(&bar, terminal.Paint(parts[i].tone, blocks));
    drawn += widths[i];
  }
  return bar +
         std::string(static_cast<size_t>(std::max(0, columns - drawn)), ' ');
}

}  // namespace gmb::cli
