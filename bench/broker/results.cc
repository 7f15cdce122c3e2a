#include "bench/broker/results.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "bench/quantile.h"

namespace gmb::bench {

void Results::Add(uint64_t bytes, const std::string& step, absl::Duration time,
                  const std::string& beside) {
  const double microseconds = absl::ToDoubleMicroseconds(time);
  for (Series& series : all_) {
    if (series.bytes != bytes || series.step != step) continue;
    series.microseconds.push_back(microseconds);
    return;
  }
  all_.push_back({bytes, step, beside, {microseconds}});
}

const Results::Series* Results::Find(uint64_t bytes,
                                     const std::string& step) const {
  for (const Series& series : all_) {
    if (series.bytes == bytes && series.step == step) return &series;
  }
  return nullptr;
}

double Results::Ratio(const Series& series) const {
  const Series* const peer = Find(series.bytes, series.beside);
  if (peer == nullptr) return 0;
  const double theirs = Quantile(peer->microseconds, 0.5);
  return theirs > 0 ? Quantile(series.microseconds, 0.5) / theirs : 0;
}

void Results::Print() const {
  std::vector<uint64_t> sizes;
  for (const Series& series : all_) sizes.push_back(series.bytes);
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  for (const uint64_t bytes : sizes) {
    std::printf("\n%llu MiB, us\n",
                static_cast<unsigned long long>(bytes >> 20));
    std::printf("  %-46s %10s %10s %10s %4s  %s\n", "", "median", "p10", "p90",
                "n", "ratio");
    for (const Series& series : all_) {
      if (series.bytes != bytes) continue;
      std::printf("  %-46s %10.1f %10.1f %10.1f %4zu", series.step.c_str(),
                  Quantile(series.microseconds, 0.5),
                  Quantile(series.microseconds, 0.1),
                  Quantile(series.microseconds, 0.9),
                  series.microseconds.size());
      if (const double ratio = Ratio(series); ratio > 0) {
        std::printf("  %.2f x %s", ratio, series.beside.c_str());
      }
      std::printf("\n");
    }
  }
  std::fflush(stdout);
}

std::string Results::Json() const {
  std::string json;
  for (const Series& series : all_) {
    absl::StrAppend(&json, json.empty() ? "" : ",\n",
                    "    {\"bytes\": ", series.bytes, ", \"step\": \"",
                    series.step,
                    "\", \"median_us\": ", Quantile(series.microseconds, 0.5),
                    ", \"p10_us\": ", Quantile(series.microseconds, 0.1),
                    ", \"p90_us\": ", Quantile(series.microseconds, 0.9),
                    ", \"n\": ", series.microseconds.size());
    if (const double ratio = Ratio(series); ratio > 0) {
      absl::StrAppend(&json, ", \"beside\": \"", series.beside,
                      "\", \"ratio\": ", ratio);
    }
    absl::StrAppend(&json, "}");
  }
  return json;
}

}  // namespace gmb::bench
