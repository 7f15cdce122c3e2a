// The things that the broker shows of itself: metrics, and the pages of --http.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/status_macros.h"
#include "broker/daemon/daemon.h"
#include "broker/log/logging.h"

namespace gmb::broker {

void Daemon::SetUpMetrics() {
  std::function<std::optional<metrics::Snapshot::Keeper>()> look_at_keeper;
  if (keeping_ != nullptr) {
    look_at_keeper = [this] {
      return metrics::Snapshot::Keeper{
          .up = !keeping_->lost(),
          .left_out = keeping_->left_out(),
          .not_adopted = keeping_->inheritance()->not_adopted()};
    };
  }
  state_disk_ = std::make_unique<metrics::StateDisk>(
      [this] { return store_->CheckDisk(); }, &clock_);
  collector_ = std::make_unique<metrics::Collector>(metrics::Collector::Sources{
      .core = core_.get(),
      .events = event_counts_.get(),
      .disk = state_disk_.get(),
      .http = &http_counts_,
      .values_not_in_force =
          [this] { return admin_service_->ValuesNotInForce(); },
      .keeper = std::move(look_at_keeper)});
}

absl::Status Daemon::StartHttp() {
  if (!config_.http.has_value()) return absl::OkStatus();
  GMB_ASSIGN_OR_RETURN(HttpListener listener, ListenForHttp(*config_.http));
  HttpServer::Options options;
  options.policy.bearer = config_.http_token;
  // A browser reaches no Unix socket, and no page knows the token.
  options.policy.check_host =
      config_.http->unix_path.empty() && config_.http_token.empty();
  GMB_ASSIGN_OR_RETURN(
      http_,
      HttpServer::Start(
          std::move(listener), std::move(options),
          [this](HttpPage page) { return AnswerHttp(page); }, &http_counts_));
  LogEvent(LogLevel::kInfo, "serving_http",
           {{"address", http_->address().Text()}});
  return absl::OkStatus();
}

HttpAnswer Daemon::AnswerHttp(HttpPage page) const {
  if (page == HttpPage::kMetrics) {
    return {.content_type = "text/plain; version=0.0.4; charset=utf-8",
            .body = collector_->RecentText()};
  }
  // Whether it serves must be known although the core is busy.
  const bool draining = draining_;
  return {.status = draining ? 503 : 200,
          .body = std::make_shared<const std::string>(draining ? "draining\n"
                                                               : "ok\n")};
}

}  // namespace gmb::broker
