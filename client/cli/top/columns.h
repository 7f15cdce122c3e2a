#ifndef GMB_CLIENT_CLI_TOP_COLUMNS_H_
#define GMB_CLIENT_CLI_TOP_COLUMNS_H_

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/cli/text/terminal.h"
#include "client/cli/top/rows.h"

namespace gmb::cli::top {

struct Field {
  std::string text;
  Tone tone = Tone::kPlain;
};

// A column of a panel.
template <typename Row>
struct Column {
  std::string title;
  int width = 0;
  bool is_left = false;      // how it is aligned
  std::optional<Sort> sort;  // it shows what this one sorts by
  std::function<Field(const Row&)> field;
};

// Those that a terminal of so many columns has room for, without the bar that
// ends each row, which takes the rest.
[[nodiscard]] std::vector<Column<TenantRow>> TenantColumns(int columns);
[[nodiscard]] std::vector<Column<SessionRow>> SessionColumns(int columns);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_COLUMNS_H_
