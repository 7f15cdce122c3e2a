// Metrics: how a family is put together.
#include "broker/metrics/families.h"

#include <limits>

namespace gmb::broker::metrics {

FamilyBuilder::FamilyBuilder(std::vector<prometheus::MetricFamily>* families,
                             prometheus::MetricType type,
                             absl::string_view name, absl::string_view help)
    : families_(families) {
  family_.name = std::string(name);
  family_.help = std::string(help);
  family_.type = type;
}

FamilyBuilder::~FamilyBuilder() {
  if (!family_.metric.empty()) families_->push_back(std::move(family_));
}

// A label without a value is the same as none.
prometheus::ClientMetric& FamilyBuilder::NewSeries(Labels labels) {
  prometheus::ClientMetric& series = family_.metric.emplace_back();
  series.label.reserve(labels.size());
  for (const auto& [name, value] : labels) {
    if (!value.empty())
      series.label.push_back({std::string(name), std::string(value)});
  }
  return series;
}

void FamilyBuilder::Add(double value, Labels labels) {
  prometheus::ClientMetric& series = NewSeries(labels);
  if (family_.type == prometheus::MetricType::Counter) {
    series.counter.value = value;
  } else {
    series.gauge.value = value;
  }
}

void FamilyBuilder::Add(const Durations& durations, Labels labels) {
  prometheus::ClientMetric::Histogram& histogram = NewSeries(labels).histogram;
  histogram.sample_count = durations.count;
  histogram.sample_sum = durations.sum_seconds;
  uint64_t so_far = 0;
  for (size_t i = 0; i < durations.counts.size(); ++i) {
    so_far += durations.counts[i];
    histogram.bucket.push_back(
        {so_far, i < Durations::kBounds.size()
                     ? Durations::kBounds[i]
                     : std::numeric_limits<double>::infinity()});
  }
}

std::vector<prometheus::MetricFamily> FamiliesOf(const Snapshot& snapshot) {
  std::vector<prometheus::MetricFamily> families;
  AddBrokerFamilies(snapshot, &families);
  AddPoolFamilies(snapshot.status, &families);
  AddTenantFamilies(snapshot, &families);
  AddCountFamilies(snapshot, &families);
  return families;
}

}  // namespace gmb::broker::metrics
