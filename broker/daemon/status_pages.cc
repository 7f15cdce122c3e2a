// The things that the broker shows of itself: metrics, and the pages of --http.
#include "broker/daemon/status_pages.h"

#include <optional>
#include <utility>

#include "base/status_macros.h"
#include "broker/log/logging.h"

namespace gmb::broker {
namespace {

// Null: there is none to look at.
std::function<std::optional<metrics::Snapshot::Keeper>()> LookAt(
    Keeping* keeping) {
  if (keeping == nullptr) return nullptr;
  return [keeping] {
    return metrics::Snapshot::Keeper{
        .up = !keeping->lost(),
        .left_out = keeping->left_out(),
        .not_adopted = keeping->inheritance()->not_adopted()};
  };
}

}  // namespace

StatusPages::StatusPages(Sources sources)
    : state_disk_([store = sources.store] { return store->CheckDisk(); },
                  sources.clock),
      collector_(metrics::Collector::Sources{
          .core = sources.core,
          .events = sources.counts,
          .disk = &state_disk_,
          .http = &http_counts_,
          .values_not_in_force = std::move(sources.values_not_in_force),
          .keeper = LookAt(sources.keeping)}) {}

absl::Status StatusPages::StartHttp(const BrokerConfig& config) {
  if (!config.http.has_value()) return absl::OkStatus();
  GMB_ASSIGN_OR_RETURN(HttpListener listener, ListenForHttp(*config.http));
  HttpServer::Options options;
  options.policy.bearer = config.http_token;
  // A browser reaches no Unix socket, and no page knows the token.
  options.policy.check_host =
      config.http->unix_path.empty() && config.http_token.empty();
  GMB_ASSIGN_OR_RETURN(
      http_,
      HttpServer::Start(
          std::move(listener), std::move(options),
          [this](HttpPage page) { return Answer(page); }, &http_counts_));
  LogEvent(LogLevel::kInfo, "serving_http",
           {{"address", http_->address().Text()}});
  return absl::OkStatus();
}

HttpAnswer StatusPages::Answer(HttpPage page) {
  if (page == HttpPage::kMetrics) {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = collector_.RecentText()};
  }
  // Whether it serves must be known although the core is busy.
  const bool draining = draining_;
  return {.status = draining ? 503 : 200,
          .body = std::make_shared<const std::string>(draining ? "draining\n"
                                                               : "ok\n")};
}

}  // namespace gmb::broker
