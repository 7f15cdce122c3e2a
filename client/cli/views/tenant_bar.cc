// A tenant as a bar.
#include "client/cli/views/tenant_bar.h"

#include <algorithm>
#include <cmath>

namespace gmb::cli {
namespace {

// The first column at or behind a quantity.
int ColumnOf(uint64_t bytes, uint64_t whole, int columns) {
  if (whole == 0) return 0;
  const double share = static_cast<double>(bytes) / static_cast<double>(whole);
  return static_cast<int>(std::lround(std::min(share, 1.0) * columns));
}

}  // namespace

BarGlyphs BarGlyphsFor(const Terminal& terminal) {
  if (terminal.unicode) return {"█", "▓", "░", "·", " ", "┃", "▐"};
  return {"#", "+", "-", ".", " ", "|", "]"};
}

std::string TenantBar(const v1::QuotaView& view, uint64_t scale_bytes,
                      int columns, const Terminal& terminal) {
  const BarGlyphs glyphs = BarGlyphsFor(terminal);
  const int leased = ColumnOf(view.leased_bytes(), scale_bytes, columns);
  const int resident = ColumnOf(
      view.leased_bytes() - std::min(view.leased_bytes(), view.evicted_bytes()),
      scale_bytes, columns);
  const int guarantee = std::min(
      ColumnOf(view.guarantee_bytes(), scale_bytes, columns), columns - 1);
  const int limit = ColumnOf(view.limit_bytes(), scale_bytes, columns);
  const int limit_mark =
      view.limit_bytes() > scale_bytes ? columns : std::min(limit, columns - 1);
  std::string bar;
  for (int column = 0; column < columns; ++column) {
    if (column == guarantee && guarantee > 0) {
      bar += terminal.Paint(Tone::kWarning, glyphs.guarantee);
    } else if (column == limit_mark) {
      bar += terminal.Paint(Tone::kBad, glyphs.limit);
    } else if (column >= resident && column < leased) {
      bar += terminal.Paint(Tone::kFaint, glyphs.evicted);
    } else if (column < leased) {
      const bool borrowed = column >= guarantee;
      bar += terminal.Paint(borrowed ? Tone::kAccent : Tone::kGood,
                            borrowed ? glyphs.borrowed : glyphs.held);
    } else {
      bar += terminal.Paint(Tone::kFaint,
                            column < limit ? glyphs.empty : glyphs.beyond);
    }
  }
  return bar;
}

}  // namespace gmb::cli
