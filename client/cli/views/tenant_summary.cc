// Tenants in `gmb status`.
#include "client/cli/views/tenant_summary.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"
#include "client/cli/views/table.h"

namespace gmb::cli {
namespace {

constexpr size_t kMostShown = 20;

struct Summed {
  const v1::Tenant* tenant = nullptr;
  uint64_t resident = 0, evicted = 0, guarantee = 0, limit = 0;
  uint64_t waiting = 0, waiting_bytes = 0;
};

Summed SumUp(const v1::Tenant& tenant) {
  Summed sum{.tenant = &tenant};
  for (const v1::TenantPool& pool : tenant.pools()) {
    sum.resident += pool.resident_bytes();
    sum.evicted += pool.evicted_bytes();
    sum.guarantee += pool.view().guarantee_bytes();
    sum.limit += pool.view().limit_bytes();
    sum.waiting += pool.waiting();
    sum.waiting_bytes += pool.waiting_bytes();
  }
  return sum;
}

Table::Cell SizeCell(uint64_t bytes, Tone tone = Tone::kPlain) {
  return bytes == 0 ? Table::Cell("-", Tone::kFaint)
                    : Table::Cell(SizeText(bytes), tone);
}

}  // namespace

void PrintTenantSummary(const v1::ListTenantsResponse& tenants,
                        const Terminal& terminal, std::ostream& out) {
  if (tenants.tenants().empty()) return;
  std::vector<Summed> sums;
  for (const v1::Tenant& tenant : tenants.tenants())
    sums.push_back(SumUp(tenant));
  std::stable_sort(sums.begin(), sums.end(),
                   [](const Summed& a, const Summed& b) {
                     return a.resident + a.evicted > b.resident + b.evicted;
                   });
  Table table({{"tenant"},
               {"processes", Table::Align::kRight},
               {"on device", Table::Align::kRight},
               {"evicted", Table::Align::kRight},
               {"guarantee", Table::Align::kRight},
               {"limit", Table::Align::kRight},
               {"waiting", Table::Align::kRight}});
  for (size_t i = 0; i < std::min(kMostShown, sums.size()); ++i) {
    const Summed& sum = sums[i];
    table.AddRow({Table::Cell(sum.tenant->name(), Tone::kStrong),
                  absl::StrCat(sum.tenant->sessions()),
                  SizeCell(sum.resident, Tone::kAccent), SizeCell(sum.evicted),
                  SizeCell(sum.guarantee), SizeText(sum.limit),
                  SizeCell(sum.waiting_bytes, Tone::kWarning)});
  }
  out << '\n';
  table.Print(out, terminal);
  if (sums.size() > kMostShown) {
    out << "and " << CountText(sums.size() - kMostShown, "tenant")
        << " more: `gmb tenant list`\n";
  }
}

}  // namespace gmb::cli
