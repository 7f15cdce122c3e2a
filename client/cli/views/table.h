#ifndef GMB_CLIENT_CLI_VIEWS_TABLE_H_
#define GMB_CLIENT_CLI_VIEWS_TABLE_H_

#include <cstddef>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/text/terminal.h"

namespace gmb::cli {

// An aligned table for people. Text from outside is made printable.
class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kLeft;
  };
  struct Cell {
    // Rows are written as braces of texts, hence implicit.
    // NOLINTNEXTLINE(google-explicit-constructor)
    Cell(std::string cell_text, Tone cell_tone = Tone::kPlain)
        : text(std::move(cell_text)), tone(cell_tone) {}
    // NOLINTNEXTLINE(google-explicit-constructor)
    Cell(const char* cell_text) : text(cell_text) {}

    std::string text;
    Tone tone = Tone::kPlain;
  };

  // How much of it was printed so far, when it comes part by part.
  struct Flow {
    bool begun = false;
    std::vector<size_t> widths;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // Missing cells at the end stay empty.
  void AddRow(std::vector<Cell> cells);
  [[nodiscard]] bool empty() const { return rows_.empty(); }

  // Two spaces between columns, none at a line's end.
  void Print(std::ostream& out, const Terminal& terminal) const {
    Flow alone;
    Print(out, terminal, &alone);
  }
  // As a further part of a table that is printed part by part: one title for
  // all, and columns that grow only.
  void Print(std::ostream& out, const Terminal& terminal, Flow* flow) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_TABLE_H_
