#ifndef MODEL_SERVERS_HTTP_SERVICE_H_
#define MODEL_SERVERS_HTTP_SERVICE_H_

#include <httplib.h>

#include <atomic>

#include "absl/status/statusor.h"
#include "engine.h"

namespace model_servers {

// An engine behind HTTP on 127.0.0.1:
//   GET /healthz   200 "ok"; 503 when the session with the broker is over
//   POST /infer    {"batch": N}; 400, or 503 with the broker's reason
//   GET /stats
// Answers are JSON, errors are {"error": "...", "reason": "..."}.
class HttpService {
 public:
  // The engine has to outlive it.
  explicit HttpService(Engine* engine);

  // 0: any port. Requests are accepted from here on and answered by Serve.
  [[nodiscard]] absl::StatusOr<int> Bind(int port);
  // Until Stop. Requests that are under way are finished.
  [[nodiscard]] absl::Status Serve();
  // From any thread, also before Serve has begun, which then ends at once.
  void Stop();

 private:
  void Infer(const httplib::Request& request, httplib::Response& response);
  void ShowStats(httplib::Response& response);

  Engine* const engine_;
  httplib::Server server_;
  std::atomic<bool> ended_ = false;
};

}  // namespace model_servers

#endif  // MODEL_SERVERS_HTTP_SERVICE_H_
