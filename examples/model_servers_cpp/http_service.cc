#include "http_service.h"

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "gmb/error.h"

namespace model_servers {
namespace {

using Json = nlohmann::json;

// A connection that is kept open holds a thread, so there are more of these
// than batches at once, and an idle one is closed soon. It also bounds how long
// Stop takes.
constexpr size_t kThreads = 32;
constexpr int kIdleSeconds = 1;
constexpr size_t kMostRequestBytes = size_t{64} << 10;

void Send(httplib::Response& response, int code, const Json& body) {
  response.status = code;
  // A message with bytes that are no UTF-8 is sent all the same.
  response.set_content(
      body.dump(-1, ' ', false, Json::error_handler_t::replace),
      "application/json");
}

int HttpCode(const absl::Status& status) {
  if (absl::IsInvalidArgument(status)) return 400;
  return absl::IsInternal(status) ? 500 : 503;
}

void SendError(httplib::Response& response, const absl::Status& status) {
  Json body = {{"error", std::string(status.message())}};
  if (const auto detail = gmb::GetErrorDetail(status)) {
    body["reason"] = gmb::ErrorReasonName(detail->reason);
  }
  Send(response, HttpCode(status), body);
}

absl::StatusOr<uint64_t> ReadBatch(const std::string& text) {
  const Json body = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!body.is_object() || !body.contains("batch")) {
    return absl::InvalidArgumentError(
        "send JSON with the number of rows: {\"batch\": 1}");
  }
  if (!body["batch"].is_number_unsigned()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"batch\" is a whole number from 1 to ", Model::kMostRows));
  }
  return body["batch"].get<uint64_t>();
}

}  // namespace

HttpService::HttpService(Engine* engine) : engine_(engine) {
  server_.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  // Without the library's SO_REUSEPORT, by which two servers share a port.
  server_.set_socket_options([](socket_t socket) {
    const int yes = 1;
    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  });
  server_.set_keep_alive_timeout(kIdleSeconds);
  server_.set_keep_alive_max_count(1 << 30);
  server_.set_payload_max_length(kMostRequestBytes);
  server_.set_tcp_nodelay(true);
  server_.Get("/healthz",
              [this](const httplib::Request&, httplib::Response& response) {
                const absl::Status health = engine_->health();
                if (!health.ok()) return SendError(response, health);
                response.set_content("ok", "text/plain");
              });
  server_.Get("/stats",
              [this](const httplib::Request&, httplib::Response& response) {
                ShowStats(response);
              });
  server_.Post("/infer", [this](const httplib::Request& request,
                                httplib::Response& response) {
    Infer(request, response);
  });
  server_.set_error_handler(
      [](const httplib::Request&, httplib::Response& response) {
        if (!response.body.empty()) return;
        const int code = response.status;
        Send(response, code,
             {{"error", code == 404 ? "there are GET /healthz, POST /infer "
                                      "and GET /stats"
                                    : "the request cannot be served"}});
      });
}

absl::StatusOr<int> HttpService::Bind(int port) {
  const char* const host = "127.0.0.1";
  if (port == 0)
    port = server_.bind_to_any_port(host);
  else if (!server_.bind_to_port(host, port))
    port = -1;
  if (port < 0) {
    return absl::UnavailableError("the port cannot be had: is it taken?");
  }
  return port;
}

absl::Status HttpService::Serve() {
  const bool stopped = server_.listen_after_bind();
  ended_ = true;
  if (stopped) return absl::OkStatus();
  return absl::InternalError("connections cannot be accepted any more");
}

void HttpService::Stop() {
  // Before it runs, the server takes no notice of a stop.
  while (!server_.is_running() && !ended_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  server_.stop();
}

void HttpService::Infer(const httplib::Request& request,
                        httplib::Response& response) {
  const absl::StatusOr<uint64_t> rows = ReadBatch(request.body);
  if (!rows.ok()) return SendError(response, rows.status());
  const absl::StatusOr<Answer> answer = engine_->Infer(*rows);
  if (!answer.ok()) return SendError(response, answer.status());
  // A number of JSON has not room for 64 bits everywhere.
  Send(response, 200,
       {{"model", engine_->model().name()},
        {"batch", *rows},
        {"sum", absl::StrCat(answer->sum)},
        {"met_evicted", answer->met_evicted},
        {"wait_ms", absl::ToDoubleMilliseconds(answer->wait)},
        {"run_ms", absl::ToDoubleMilliseconds(answer->run)}});
}

void HttpService::ShowStats(httplib::Response& response) {
  const Stats stats = engine_->stats();
  Send(response, 200,
       {{"model", engine_->model().name()},
        {"requests", stats.requests},
        {"refused", stats.refused},
        {"held_bytes", stats.held_bytes},
        {"peak_held_bytes", stats.peak_held_bytes}});
}

}  // namespace model_servers
