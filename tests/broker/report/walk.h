#ifndef GMB_TESTS_BROKER_REPORT_WALK_H_
#define GMB_TESTS_BROKER_REPORT_WALK_H_

#include <time.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "broker/report/report.h"
#include "gtest/gtest.h"
#include "tests/broker/report/large_machine.h"

namespace gmb::broker {

// Lists of a machine as the core asks for them: slice by slice, each as if
// under the lock, with others' work in between.
class Walk {
 public:
  explicit Walk(const LargeMachine* machine) : machine_(machine) {}

  // Done between any two slices.
  std::function<void()> between = [] {};

  absl::StatusOr<v1::ListLeasesResponse> Leases(
      const v1::ListLeasesRequest& request) {
    using Response = v1::ListLeasesResponse;
    return report::FillPage<Response>(
        {.list = "leases", .filter = request.tenant()}, request,
        [](const Response& r) -> auto& { return r.leases(); },
        [&](report::Page* page, size_t most_rows, Response* response) {
          return Timed([&] {
            return report::AddLeases(machine_->state(), request.tenant(), page,
                                     most_rows, response);
          });
        });
  }
  absl::StatusOr<v1::ListSessionsResponse> Sessions(
      const v1::ListSessionsRequest& request) {
    using Response = v1::ListSessionsResponse;
    report::SessionSums sums;
    return report::FillPage<Response>(
        {.list = "sessions", .filter = request.tenant()}, request,
        [](const Response& r) -> auto& { return r.sessions(); },
        [&](report::Page* page, size_t most_rows, Response* response) {
          return Timed([&] {
            return report::AddSessions(machine_->state(), request.tenant(),
                                       machine_->now(), page, most_rows, &sums,
                                       response);
          });
        });
  }
  absl::StatusOr<v1::ListTenantsResponse> Tenants(
      const v1::ListTenantsRequest& request) {
    using Response = v1::ListTenantsResponse;
    return report::FillPage<Response>(
        {.list = "tenants", .numbers = 0}, request,
        [](const Response& r) -> auto& { return r.tenants(); },
        [&](report::Page* page, size_t most_rows, Response* response) {
          return Timed([&] {
            report::AddTenants(machine_->state(), page, most_rows, response);
            return absl::OkStatus();
          });
        });
  }
  absl::StatusOr<v1::ExplainResponse> Explain(
      const v1::ExplainRequest& request) {
    using Response = v1::ExplainResponse;
    report::WhyTheyStay why;
    return report::FillPage<Response>(
        {.list = "waiting requests", .filter = request.tenant(), .numbers = 2},
        request, [](const Response& r) -> auto& { return r.waiting(); },
        [&](report::Page* page, size_t most_rows, Response* response) {
          return Timed([&] {
            return report::AddExplanation(machine_->state(), request.tenant(),
                                          machine_->now(), page, most_rows,
                                          &why, response);
          });
        });
  }

  // CPU time of the longest slices, in ms; the shortest of them last.
  [[nodiscard]] std::vector<double> longest_ms() const {
    std::vector<double> sorted = ms_;
    std::sort(sorted.rbegin(), sorted.rend());
    return sorted;
  }

 private:
  static double CpuMilliseconds() {
    timespec time{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e3 +
           static_cast<double>(time.tv_nsec) / 1e6;
  }
  template <typename Slice>
  absl::Status Timed(const Slice& slice) {
    const double before = CpuMilliseconds();
    absl::Status done = slice();
    ms_.push_back(CpuMilliseconds() - before);
    between();
    return done;
  }

  const LargeMachine* const machine_;
  std::vector<double> ms_;
};

// All pages, and how many there were.
template <typename Response, typename Request, typename OnePage>
Response AllPages(Request request, const OnePage& one_page,
                  size_t* pages = nullptr) {
  Response all;
  for (size_t n = 1;; ++n) {
    const absl::StatusOr<Response> page = one_page(request);
    EXPECT_TRUE(page.ok()) << page.status();
    if (!page.ok()) return all;
    EXPECT_LT(page->ByteSizeLong(), size_t{2} << 20);
    all.MergeFrom(*page);
    if (pages != nullptr) *pages = n;
    if (page->next_page_token().empty()) break;
    request.set_page_token(page->next_page_token());
  }
  all.clear_next_page_token();
  return all;
}

}  // namespace gmb::broker

#endif  // GMB_TESTS_BROKER_REPORT_WALK_H_
