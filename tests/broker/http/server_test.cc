// The HTTP server against peers that take their time. That a peer is hung up on
// is read from the server's own count: what a peer sees of it waits behind what
// the kernel still has for it.
#include "broker/http/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/unique_fd.h"
#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

using std::chrono::milliseconds;

// Polls; a test that never sees it fails.
bool Await(const std::function<bool()>& holds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(milliseconds(2));
  }
  return true;
}

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(milliseconds time_for_all, size_t body_bytes) {
    auto listener = ListenForHttp(*ParseHttpAddress("127.0.0.1:0"));
    ASSERT_TRUE(listener.ok()) << listener.status();
    const auto body =
        std::make_shared<const std::string>(std::string(body_bytes, 'x'));
    auto server = HttpServer::Start(
        *std::move(listener), {.policy = {}, .time_for_all = time_for_all},
        [body](HttpPage) { return HttpAnswer{.body = body}; }, &counts_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  base::UniqueFd Connect(int receive_bytes = 0) const {
    base::UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    // A test whose answer never comes fails.
    const timeval patience{.tv_sec = 30, .tv_usec = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience,
                 sizeof(patience));
    if (receive_bytes > 0)
      ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &receive_bytes,
                   sizeof(receive_bytes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(server_->address().port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address),
                        sizeof(address)),
              0);
    return fd;
  }

  static void Send(const base::UniqueFd& fd, const std::string& text) {
    EXPECT_EQ(::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(text.size()));
  }

  static std::string ReadAll(const base::UniqueFd& fd) {
    std::string all;
    char buffer[65536];
    ssize_t n = 0;
    while ((n = ::recv(fd.get(), buffer, sizeof(buffer), 0)) > 0)
      all.append(buffer, static_cast<size_t>(n));
    return all;
  }

  std::string Ask(const std::string& request) const {
    const base::UniqueFd fd = Connect();
    Send(fd, request);
    return ReadAll(fd);
  }

  static constexpr char kGet[] =
      "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";

  HttpCounts counts_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswersAndEndsTheConnection) {
  Start(std::chrono::seconds(60), 100'000);
  const std::string answer = Ask(kGet);
  EXPECT_EQ(answer.substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_NE(answer.find("\r\nConnection: close\r\n"), std::string::npos);
  EXPECT_EQ(answer.substr(answer.size() - 100'000), std::string(100'000, 'x'));
  EXPECT_TRUE(Await([&] { return counts_.connections == 0; }));
}

TEST_F(HttpServerTest, RefusalsSayWhy) {
  Start(std::chrono::seconds(60), 10);
  EXPECT_NE(
      Ask("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n").find(" 421 "),
      std::string::npos);
  EXPECT_NE(Ask("POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                "Content-Length: 5\r\n\r\nabcde")
                .find("Allow: GET, HEAD"),
            std::string::npos);
  EXPECT_NE(Ask("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n").find(" 404 "),
            std::string::npos);
  EXPECT_EQ(counts_.refused, 3U);
}

TEST_F(HttpServerTest, WhatIsNoHttpEndsItsOwnConnection) {
  Start(milliseconds(300), 10);
  const std::vector<std::string> all = {
      "\r\n\r\n\r\n", std::string(1000, '\0') + "\r\n\r\n", "GET\r\n\r\n",
      "GET /metrics HTTP/1.1\r\nHost\r\n\r\n",
      "GET /" + std::string(100'000, 'a') + " HTTP/1.1\r\n\r\n"};
  for (const std::string& bytes : all) {
    const base::UniqueFd fd = Connect();
    (void)::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    ::shutdown(fd.get(), SHUT_WR);
    EXPECT_EQ(ReadAll(fd).find("200 OK"), std::string::npos);
  }
  EXPECT_EQ(Ask(kGet).substr(0, 15), "HTTP/1.1 200 OK");
}

TEST_F(HttpServerTest, HalfARequestIsHungUpOn) {
  Start(milliseconds(300), 10);
  const base::UniqueFd fd = Connect();
  // A byte now and then keeps no connection open.
  std::string rest = "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ";
  while (counts_.hung_up_on == 0 && rest.size() < 10'000) {
    (void)::send(fd.get(), rest.data(), 1, MSG_NOSIGNAL);
    rest.erase(0, 1);
    if (rest.empty()) rest = "x";
    std::this_thread::sleep_for(milliseconds(10));
  }
  EXPECT_TRUE(Await([&] { return counts_.hung_up_on == 1; }));
  EXPECT_TRUE(Await([&] { return counts_.connections == 0; }));
  EXPECT_EQ(counts_.answered, 0U);
}

TEST_F(HttpServerTest, AReaderThatNeverReadsIsHungUpOn) {
  Start(milliseconds(300), size_t{64} << 20);
  const base::UniqueFd fd = Connect(/*receive_bytes=*/1);
  Send(fd, kGet);
  EXPECT_TRUE(Await([&] { return counts_.hung_up_on == 1; }));
  EXPECT_TRUE(Await([&] { return counts_.connections == 0; }));
}

TEST_F(HttpServerTest, AsManyAsMayBeOpenHoldUpOthersNoLongerThanTheirTime) {
  Start(milliseconds(500), 10);
  std::vector<base::UniqueFd> silent;
  for (unsigned i = 0; i < HttpServer::kMostConnections; ++i)
    silent.push_back(Connect());
  EXPECT_TRUE(Await(
      [&] { return counts_.connections == HttpServer::kMostConnections; }));
  // The first that is hung up on makes room for it; the others follow as their
  // own times end.
  EXPECT_EQ(Ask(kGet).substr(0, 15), "HTTP/1.1 200 OK");
  EXPECT_GE(counts_.hung_up_on, 1U);
  EXPECT_TRUE(Await(
      [&] { return counts_.hung_up_on == HttpServer::kMostConnections; }));
}

TEST_F(HttpServerTest, TheEndHangsUpOnEverybody) {
  Start(std::chrono::seconds(600), size_t{64} << 20);
  const base::UniqueFd silent = Connect();
  const base::UniqueFd reader = Connect(/*receive_bytes=*/1);
  Send(reader, kGet);
  EXPECT_TRUE(Await([&] { return counts_.answered == 1; }));
  server_.reset();
  EXPECT_EQ(counts_.connections, 0U);
}

}  // namespace
}  // namespace gmb::broker
