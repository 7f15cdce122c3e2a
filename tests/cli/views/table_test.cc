#include "client/cli/views/table.h"

#include <sstream>

#include "gtest/gtest.h"

namespace gmb::cli {
namespace {

std::string Print(const Table& table, const Terminal& terminal = {}) {
  std::ostringstream out;
  table.Print(out, terminal);
  return out.str();
}

TEST(TableTest, ColumnsAreAlignedAndLinesHaveNoSpaceAtTheirEnd) {
  Table table({{"name"}, {"bytes", Table::Align::kRight}, {"note"}});
  table.AddRow({"a", "1 B", ""});
  table.AddRow({"longer", "100 B", "x"});
  EXPECT_EQ(Print(table),
            "name    bytes  note\n"
            "a         1 B\n"
            "longer  100 B  x\n");
}

TEST(TableTest, ColoursDoNotCountAsWidth) {
  Table table({{"a"}, {"b"}});
  table.AddRow({{"x", Tone::kBad}, "y"});
  table.AddRow({"long", "z"});
  Terminal terminal;
  terminal.colour = true;
  EXPECT_NE(Print(table, terminal).find("\x1b[1;31mx\x1b[0m     y"),
            std::string::npos)
      << Print(table, terminal);
}

TEST(TableTest, TextFromOutsideCannotMoveTheCursor) {
  Table table({{"program"}});
  table.AddRow({"evil\x1b[2J\r\n"});
  EXPECT_EQ(Print(table).find('\x1b'), std::string::npos);
}

TEST(TableTest, WithoutColourNothingIsPainted) {
  EXPECT_EQ(Terminal().Paint(Tone::kBad, "text"), "text");
}

}  // namespace
}  // namespace gmb::cli
