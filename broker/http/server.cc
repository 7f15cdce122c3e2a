// HTTP: libmicrohttpd on one thread, with a deadline for each connection.
//
// The library knows a time without any byte, which a reader of one byte now and
// then never reaches; the deadlines are ours.
#include "broker/http/server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;

// For the headers of one request; one that has more is refused by the library.
constexpr size_t kConnectionBytes = size_t{16} << 10;
// When no connection can be accepted (no open files are left), the socket that
// listens stays readable: looked at again so late.
constexpr milliseconds kAfterNothing{10};

// The library says what strangers do wrong, as often as they like.
void Ignore(void*, const char*, va_list) {}

void FreeBody(void* body) {
  delete static_cast<std::shared_ptr<const std::string>*>(body);
}

struct Response {
  void operator()(MHD_Response* response) const {
    MHD_destroy_response(response);
  }
};
using ResponsePtr = std::unique_ptr<MHD_Response, Response>;

// The library never writes to the buffer, and gives it back by FreeBody.
ResponsePtr MakeResponse(std::shared_ptr<const std::string> body) {
  auto* const kept = new std::shared_ptr<const std::string>(std::move(body));
  ResponsePtr response(MHD_create_response_from_buffer_with_free_callback_cls(
      (*kept)->size(), const_cast<char*>((*kept)->data()), &FreeBody, kept));
  if (response == nullptr) FreeBody(kept);
  return response;
}

}  // namespace

// The library knows only functions.
struct HttpServer::Callbacks {
  static MHD_Result OnHeader(void* request, MHD_ValueKind, const char* name,
                             size_t name_size, const char* value,
                             size_t value_size) {
    auto* const to = static_cast<HttpRequest*>(request);
    const absl::string_view key(name, name_size);
    const std::string text(value == nullptr ? "" : value,
                           value == nullptr ? 0 : value_size);
    if (absl::EqualsIgnoreCase(key, MHD_HTTP_HEADER_HOST))
      to->host.push_back(text);
    if (absl::EqualsIgnoreCase(key, MHD_HTTP_HEADER_AUTHORIZATION))
      to->authorization.push_back(text);
    return MHD_YES;
  }

  // Once the headers are here. Anything else that the peer sends is never read:
  // the connection ends with the answer.
  static MHD_Result OnRequest(void* server, MHD_Connection* connection,
                              const char* url, const char* method, const char*,
                              const char*, size_t*, void**) {
    HttpRequest request{
        .method = method, .path = url, .host = {}, .authorization = {}};
    MHD_get_connection_values_n(connection, MHD_HEADER_KIND, &OnHeader,
                                &request);
    const int queued =
        static_cast<HttpServer*>(server)->Answer(connection, request);
    return queued == MHD_YES ? MHD_YES : MHD_NO;
  }

  static void OnConnection(void* server, MHD_Connection* connection, void**,
                           MHD_ConnectionNotificationCode what) {
    auto* const self = static_cast<HttpServer*>(server);
    const MHD_ConnectionInfo* const info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info == nullptr) return;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
      self->connections_[info->connect_fd] = {
          .deadline =
              std::chrono::steady_clock::now() + self->options_.time_for_all};
    } else {
      self->connections_.erase(info->connect_fd);
    }
    self->counts_->connections = self->connections_.size();
  }
};

void HttpServer::Stop::operator()(MHD_Daemon* daemon) const {
  MHD_stop_daemon(daemon);
}

HttpServer::HttpServer(HttpListener listener, Options options, Handler handler,
                       HttpCounts* counts, ipc::Wakeup wakeup)
    : listener_(std::move(listener)),
      options_(std::move(options)),
      handler_(std::move(handler)),
      counts_(counts),
      wakeup_(std::move(wakeup)) {}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(
    HttpListener listener, Options options, Handler handler,
    HttpCounts* counts) {
  GMB_ASSIGN_OR_RETURN(ipc::Wakeup wakeup, ipc::Wakeup::Create());
  std::unique_ptr<HttpServer> server(
      new HttpServer(std::move(listener), std::move(options),
                     std::move(handler), counts, std::move(wakeup)));
  // Without a thread of its own: MHD_run is called by ours. It closes the
  // listening socket when it is stopped.
  const int fd = server->listener_.fd.get();
  server->daemon_.reset(MHD_start_daemon(
      MHD_USE_EPOLL | MHD_USE_ERROR_LOG, 0, nullptr, nullptr,
      &Callbacks::OnRequest, server.get(), MHD_OPTION_EXTERNAL_LOGGER, &Ignore,
      nullptr, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
      kMostConnections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kConnectionBytes,
      MHD_OPTION_NOTIFY_CONNECTION, &Callbacks::OnConnection, server.get(),
      MHD_OPTION_END));
  if (server->daemon_ == nullptr) {
    return absl::UnavailableError(absl::StrCat(
        "cannot answer HTTP at ", server->address().Text(),
        ": the HTTP library does not start; are there open files left?"));
  }
  (void)server->listener_.fd.release();
  server->thread_ = std::thread([self = server.get()] { self->Run(); });
  return server;
}

HttpServer::~HttpServer() {
  stopping_ = true;
  wakeup_.Notify();
  if (thread_.joinable()) thread_.join();
}

// Below 0: as long as nothing happens.
milliseconds HttpServer::TimeToWait() const {
  milliseconds wait{-1};
  const auto at_most = [&wait](milliseconds time) {
    if (wait.count() < 0 || time < wait) wait = std::max(time, milliseconds{0});
  };
  const Time now = std::chrono::steady_clock::now();
  for (const auto& [fd, connection] : connections_) {
    at_most(connection.hung_up_on
                ? kAfterNothing
                : std::chrono::ceil<milliseconds>(connection.deadline - now));
  }
  MHD_UNSIGNED_LONG_LONG library = 0;
  if (MHD_get_timeout(daemon_.get(), &library) == MHD_YES)
    at_most(milliseconds{std::min<MHD_UNSIGNED_LONG_LONG>(library, 1000)});
  return wait;
}

// Bytes that the kernel still has for them are dropped: nobody waits for them.
void HttpServer::HangUpOnOverdue() {
  const Time now = std::chrono::steady_clock::now();
  for (auto& [fd, connection] : connections_) {
    if (connection.hung_up_on || connection.deadline > now) continue;
    const linger at_once{.l_onoff = 1, .l_linger = 0};
    ::setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    ::shutdown(fd, SHUT_RDWR);
    connection.hung_up_on = true;
    ++counts_->hung_up_on;
  }
}

void HttpServer::Run() {
  const MHD_DaemonInfo* const info =
      MHD_get_daemon_info(daemon_.get(), MHD_DAEMON_INFO_EPOLL_FD_LINUX_ONLY);
  std::array<pollfd, 2> fds{pollfd{wakeup_.fd(), POLLIN, 0},
                            pollfd{info->epoll_fd, POLLIN, 0}};
  while (!stopping_) {
    ::poll(fds.data(), fds.size(), static_cast<int>(TimeToWait().count()));
    if (stopping_) break;
    const uint64_t answered = counts_->answered;
    const size_t open = connections_.size();
    HangUpOnOverdue();
    MHD_run(daemon_.get());
    // The library listens again, after there were too many, in its next run.
    if (connections_.size() < open) MHD_run(daemon_.get());
    if (connections_.empty() && counts_->answered == answered)
      ::poll(fds.data(), 1, static_cast<int>(kAfterNothing.count()));
  }
}

int HttpServer::Answer(MHD_Connection* connection, const HttpRequest& request) {
  const HttpVerdict verdict = Judge(request, options_.policy);
  ++counts_->answered;
  if (verdict.status != 200) ++counts_->refused;
  HttpAnswer answer;
  if (verdict.page != HttpPage::kNone) {
    answer = handler_(verdict.page);
  } else {
    answer.status = verdict.status;
    answer.body = std::make_shared<const std::string>(verdict.explanation);
  }
  const ResponsePtr response = MakeResponse(std::move(answer.body));
  if (response == nullptr) return MHD_NO;
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONNECTION, "close");
  MHD_add_response_header(response.get(), MHD_HTTP_HEADER_CONTENT_TYPE,
                          answer.content_type);
  // Every page is text, also to a browser that thinks it knows better.
  MHD_add_response_header(response.get(), "X-Content-Type-Options", "nosniff");
  if (answer.status == 401)
    MHD_add_response_header(response.get(), MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                            "Bearer");
  if (answer.status == 405)
    MHD_add_response_header(response.get(), MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
  return MHD_queue_response(connection, static_cast<unsigned>(answer.status),
                            response.get());
}

}  // namespace gmb::broker
