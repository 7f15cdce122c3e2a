#ifndef GMB_BROKER_HTTP_SERVER_H_
#define GMB_BROKER_HTTP_SERVER_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "broker/http/listen.h"
#include "broker/http/rules.h"
#include "ipc/wakeup.h"

struct MHD_Connection;
struct MHD_Daemon;

namespace gmb::broker {

// The answer to a request that is allowed.
struct HttpAnswer {
  int status = 200;
  const char* content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;  // never null
};

// Counts of what has happened at a server's door. Thread-safe; outlives the
// server.
struct HttpCounts {
  std::atomic<uint64_t> connections{0};  // open now
  std::atomic<uint64_t> answered{0};
  std::atomic<uint64_t> refused{0};     // answered too, with an error
  std::atomic<uint64_t> hung_up_on{0};  // their time was over
};

// Serves a few small pages to strangers, on one thread of its own.
//
// A connection has one request, and `time_for_all` for everything: for sending
// it as for taking the answer. A peer that is not done by then is hung up on, a
// reader that takes a byte now and then too. At most kMostConnections are open;
// others wait in the kernel until one ends.
class HttpServer {
 public:
  static constexpr unsigned kMostConnections = 16;

  // Called on the server's thread, one at a time.
  using Handler = std::function<HttpAnswer(HttpPage)>;
  struct Options {
    HttpPolicy policy;
    std::chrono::milliseconds time_for_all{10'000};
  };
  // `counts` outlives it.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(
      HttpListener listener, Options options, Handler handler,
      HttpCounts* counts);
  // Hangs up on everybody.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] const HttpAddress& address() const { return listener_.address; }

 private:
  struct Callbacks;  // of the library, which is C
  using Time = std::chrono::steady_clock::time_point;

  HttpServer(HttpListener listener, Options options, Handler handler,
             HttpCounts* counts, ipc::Wakeup wakeup);
  void Run();
  std::chrono::milliseconds TimeToWait() const;
  void HangUpOnOverdue();
  int Answer(MHD_Connection* connection, const HttpRequest& request);

  HttpListener listener_;
  const Options options_;
  const Handler handler_;
  HttpCounts* const counts_;
  ipc::Wakeup wakeup_;
  std::atomic<bool> stopping_{false};

  struct Stop {
    void operator()(MHD_Daemon* daemon) const;
  };
  struct Connection {
    Time deadline;
    bool hung_up_on = false;  // the library is still to see it
  };
  // The server's thread's, once it runs.
  std::map<int, Connection> connections_;  // by their fds
  std::unique_ptr<MHD_Daemon, Stop> daemon_;
  std::thread thread_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_HTTP_SERVER_H_
