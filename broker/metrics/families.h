#ifndef GMB_BROKER_METRICS_FAMILIES_H_
#define GMB_BROKER_METRICS_FAMILIES_H_

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "broker/metrics/durations.h"
#include "broker/metrics/snapshot.h"
#include "prometheus/metric_family.h"

namespace gmb::broker::metrics {

// A snapshot in Prometheus's form: docs/metrics.md lists all of it. Pure.
[[nodiscard]] std::vector<prometheus::MetricFamily> FamiliesOf(
    const Snapshot& snapshot);

// One family being built. Values are escaped when they are written, not here.
class FamilyBuilder {
 public:
  using Labels =
      std::initializer_list<std::pair<absl::string_view, absl::string_view>>;

  // Joins `families` when it is destroyed, unless it has no series.
  FamilyBuilder(std::vector<prometheus::MetricFamily>* families,
                prometheus::MetricType type, absl::string_view name,
                absl::string_view help);
  ~FamilyBuilder();
  FamilyBuilder(const FamilyBuilder&) = delete;
  FamilyBuilder& operator=(const FamilyBuilder&) = delete;

  void Add(double value, Labels labels = {});
  void Add(uint64_t value, Labels labels = {}) {
    Add(static_cast<double>(value), labels);
  }
  void Add(bool value, Labels labels = {}) { Add(value ? 1.0 : 0.0, labels); }
  void Add(const Durations& durations, Labels labels);

 private:
  prometheus::ClientMetric& NewSeries(Labels labels);

  std::vector<prometheus::MetricFamily>* const families_;
  prometheus::MetricFamily family_;
};

// The parts of FamiliesOf.
void AddBrokerFamilies(const Snapshot& snapshot,
                       std::vector<prometheus::MetricFamily>* families);
void AddPoolFamilies(const v1::GetStatusResponse& status,
                     std::vector<prometheus::MetricFamily>* families);
void AddTenantFamilies(const Snapshot& snapshot,
                       std::vector<prometheus::MetricFamily>* families);
// Of tenants that are there: what deleted ones did is forgotten.
void AddCountFamilies(const Snapshot& snapshot,
                      std::vector<prometheus::MetricFamily>* families);

}  // namespace gmb::broker::metrics

#endif  // GMB_BROKER_METRICS_FAMILIES_H_
