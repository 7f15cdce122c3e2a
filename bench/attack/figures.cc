// The figures of one attack, over its rounds.
#include "bench/attack/figures.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/quantile.h"

namespace gmb::bench {

void AddRound(const Round& attack, const Round& control, const Held& before,
              const Held& after, Figures* figures) {
  const double p99 = Quantile(attack.seen.acquire_ms, 0.99);
  const double control_p99 = Quantile(control.seen.acquire_ms, 0.99);
  figures->attack_p50.push_back(Quantile(attack.seen.acquire_ms, 0.5));
  figures->attack_p99.push_back(p99);
  figures->control_p50.push_back(Quantile(control.seen.acquire_ms, 0.5));
  figures->control_p99.push_back(control_p99);
  figures->ratios.push_back(control_p99 > 0 ? p99 / control_p99 : 0);
  const auto grow = [](double* most, double now) {
    *most = std::max(*most, now);
  };
  grow(&figures->greeting_ms, attack.seen.greeting_ms);
  grow(&figures->status_ms, attack.seen.status_ms);
  grow(&figures->control_greeting_ms, control.seen.greeting_ms);
  grow(&figures->control_status_ms, control.seen.status_ms);
  grow(&figures->cores, attack.cores);
  grow(&figures->broker_cores, attack.broker_cores);
  grow(&figures->control_broker_cores, control.broker_cores);
  const auto more = [](int64_t* most, int64_t now) {
    *most = std::max(*most, now);
  };
  more(&figures->peak.anonymous_kib,
       attack.most.anonymous_kib - before.anonymous_kib);
  more(&figures->left.anonymous_kib,
       after.anonymous_kib - before.anonymous_kib);
  more(&figures->left.fds, after.fds - before.fds);
  more(&figures->left.threads, after.threads - before.threads);
  figures->failures.insert(figures->failures.end(),
                           attack.seen.failures.begin(),
                           attack.seen.failures.end());
  figures->told = attack.told;
}

Cells Row(const Figures& f) {
  const auto ms = [](double value) { return absl::StrFormat("%.2f", value); };
  const auto median = [](const std::vector<double>& values) {
    return Quantile(values, 0.5);
  };
  const auto both = [](double attack, double control) {
    return absl::StrFormat("%.0f/%.0f", attack, control);
  };
  const auto mib = [](const Held& held) {
    return absl::StrFormat("%.1f",
                           static_cast<double>(held.anonymous_kib) / 1024);
  };
  return {{"cores", ms(f.cores)},
          {"gmbd", absl::StrFormat("%.2f/%.2f", f.broker_cores,
                                   f.control_broker_cores)},
          {"p50", ms(median(f.attack_p50))},
          {"p99", ms(median(f.attack_p99))},
          {"ctl p50", ms(median(f.control_p50))},
          {"ctl p99", ms(median(f.control_p99))},
          {"ratio", ms(median(f.ratios))},
          {"worst", ms(Quantile(f.ratios, 1))},
          {"greet", both(f.greeting_ms, f.control_greeting_ms)},
          {"status", both(f.status_ms, f.control_status_ms)},
          {"peak", mib(f.peak)},
          {"left", mib(f.left)},
          {"fds", absl::StrCat(f.left.fds)},
          {"threads", absl::StrCat(f.left.threads)},
          {"ended", absl::StrCat(f.ended)},
          {"failed", absl::StrCat(f.failures.size() - f.ended)}};
}

}  // namespace gmb::bench
