// Aligned tables for people.
#include "client/cli/views/table.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

void Table::AddRow(std::vector<Cell> cells) {
  cells.resize(columns_.size(), Cell(""));
  for (Cell& cell : cells) cell.text = Printable(cell.text);
  rows_.push_back(std::move(cells));
}

void Table::Print(std::ostream& out, const Terminal& terminal,
                  Flow* flow) const {
  std::vector<size_t>& widths = flow->widths;
  widths.resize(columns_.size());
  std::vector<Cell> titles;
  for (size_t i = 0; i < columns_.size(); ++i) {
    titles.emplace_back(columns_[i].title, Tone::kFaint);
    widths[i] = std::max(widths[i], DisplayWidth(columns_[i].title));
    for (const auto& row : rows_)
      widths[i] = std::max(widths[i], DisplayWidth(row[i].text));
  }
  const auto print_row = [&](const std::vector<Cell>& row) {
    // Spaces are held back until something follows them.
    std::string spaces;
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string padding(widths[i] - DisplayWidth(row[i].text), ' ');
      if (columns_[i].align == Align::kRight) spaces += padding;
      if (!row[i].text.empty()) {
        out << spaces << terminal.Paint(row[i].tone, row[i].text);
        spaces.clear();
      }
      if (columns_[i].align == Align::kLeft) spaces += padding;
      spaces += "  ";
    }
    out << '\n';
  };
  if (!flow->begun) print_row(titles);
  flow->begun = true;
  for (const auto& row : rows_) print_row(row);
}

}  // namespace gmb::cli
