// The figures of the load that clients saw.
#include "bench/load/op_figures.h"

#include <cstdio>

#include "absl/strings/str_cat.h"

namespace gmb::bench {

void PrintOps(Tally* tally, double seconds, double beside_ms) {
  std::printf("%-8s %9s %8s %9s %9s %9s %9s%s\n", "", "n", "a second", "p50 ms",
              "p90", "p99", "longest",
              beside_ms > 0 ? "  p50 / empty stream" : "");
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    const TimeCounts& times = tally->ops.at(i);
    const auto count = static_cast<double>(times.count());
    std::printf("%-8s %9.0f %8.1f %9.3f %9.3f %9.3f %9.3f", kOpNames.at(i),
                count, count / seconds, times.Quantile(0.5),
                times.Quantile(0.9), times.Quantile(0.99), times.Quantile(1));
    if (beside_ms > 0) std::printf("  %.2f", times.Quantile(0.5) / beside_ms);
    std::printf("\n");
  }
}

std::string OpsJson(Tally* tally, double seconds, double beside_ms) {
  std::string json;
  for (size_t i = 0; i < kOpNames.size(); ++i) {
    const TimeCounts& times = tally->ops.at(i);
    absl::StrAppend(
        &json, json.empty() ? "" : ",\n", "    {\"op\": \"", kOpNames.at(i),
        "\", \"n\": ", times.count(),
        ", \"a_second\": ", static_cast<double>(times.count()) / seconds,
        ", \"p50_ms\": ", times.Quantile(0.5),
        ", \"p90_ms\": ", times.Quantile(0.9),
        ", \"p99_ms\": ", times.Quantile(0.99),
        ", \"longest_ms\": ", times.Quantile(1));
    if (beside_ms > 0) {
      absl::StrAppend(&json, ", \"p50_to_empty_stream\": ",
                      times.Quantile(0.5) / beside_ms);
    }
    absl::StrAppend(&json, "}");
  }
  return json;
}

}  // namespace gmb::bench
