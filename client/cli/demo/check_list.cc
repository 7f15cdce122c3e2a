// The demo: its checks, and the table at its end.
#include "client/cli/demo/check_list.h"

#include <algorithm>

#include "client/cli/views/table.h"

namespace gmb::cli {

bool CheckList::passed() const {
  return !checks_.empty() &&
         std::all_of(checks_.begin(), checks_.end(),
                     [](const Check& c) { return c.passed; });
}

void CheckList::Print(std::ostream& out, const Terminal& terminal) const {
  Table table({{""}, {"what was shown"}, {"what was measured"}});
  for (const Check& check : checks_) {
    table.AddRow({check.passed ? Table::Cell("PASS", Tone::kGood)
                               : Table::Cell("FAIL", Tone::kBad),
                  check.claim, check.measured});
  }
  table.Print(out, terminal);
}

Json CheckList::AsJson() const {
  Json list = Json::array();
  for (const Check& check : checks_) {
    list.push_back({{"passed", check.passed},
                    {"claim", check.claim},
                    {"measured", check.measured}});
  }
  return list;
}

}  // namespace gmb::cli
