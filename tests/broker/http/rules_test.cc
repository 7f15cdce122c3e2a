// Which requests are answered, and by what mistake each other one is refused.
#include "broker/http/rules.h"

#include "gtest/gtest.h"

namespace gmb::broker {
namespace {

const HttpPolicy kLocal{};
const HttpPolicy kWithToken{.bearer = "0123456789abcdef", .check_host = false};

HttpRequest Get(const std::string& path,
                const std::string& host = "127.0.0.1:9469") {
  return {.method = "GET", .path = path, .host = {host}, .authorization = {}};
}

HttpRequest With(const std::string& authorization) {
  HttpRequest request = Get("/metrics", "gpu-node-1.example:9469");
  request.authorization = {authorization};
  return request;
}

TEST(HttpRulesTest, TheTwoPagesAreAnswered) {
  EXPECT_EQ(Judge(Get("/metrics"), kLocal).page, HttpPage::kMetrics);
  EXPECT_EQ(Judge(Get("/healthz"), kLocal).page, HttpPage::kHealth);
  HttpRequest head = Get("/metrics");
  head.method = "HEAD";
  EXPECT_EQ(Judge(head, kLocal).page, HttpPage::kMetrics);
}

TEST(HttpRulesTest, NothingElseIs) {
  for (const char* path : {"", "/", "/metrics/", "/METRICS", "//metrics",
                           "/metrics/../healthz", "/metrics%00", "metrics"}) {
    const HttpVerdict verdict = Judge(Get(path), kLocal);
    EXPECT_EQ(verdict.status, 404) << path;
    EXPECT_EQ(verdict.page, HttpPage::kNone) << path;
    EXPECT_NE(verdict.explanation, "");
  }
  for (const char* method :
       {"POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "get", ""}) {
    HttpRequest request = Get("/metrics");
    request.method = method;
    EXPECT_EQ(Judge(request, kLocal).status, 405) << method;
  }
}

TEST(HttpRulesTest, AForeignNameIsRefusedWhereABrowserCouldBeLedTo) {
  for (const char* host : {"localhost", "LocalHost:1", "127.0.0.1",
                           "127.1.2.3:80", "[::1]", "[::1]:9469"}) {
    EXPECT_EQ(Judge(Get("/metrics", host), kLocal).status, 200) << host;
  }
  for (const char* host :
       {"evil.example", "evil.example:9469", "localhost.evil.example",
        "127.0.0.1.evil.example", "10.0.0.1", "[::2]", "[::ffff:127.0.0.1]",
        "[::1", "[::1]evil", "", "localhost@evil", " localhost", "::1"}) {
    EXPECT_EQ(Judge(Get("/metrics", host), kLocal).status, 421) << host;
    EXPECT_EQ(Judge(Get("/healthz", host), kLocal).status, 421) << host;
    // Where a token is asked for, the name does not matter.
    HttpRequest request = With("Bearer 0123456789abcdef");
    request.host = {host};
    EXPECT_EQ(Judge(request, kWithToken).status, 200) << host;
  }
}

TEST(HttpRulesTest, OneHostIsNamed) {
  HttpRequest none = Get("/metrics");
  none.host.clear();
  EXPECT_EQ(Judge(none, kLocal).status, 400);
  HttpRequest two = Get("/metrics");
  two.host.emplace_back("evil.example");
  EXPECT_EQ(Judge(two, kLocal).status, 400);
  EXPECT_EQ(Judge(two, kWithToken).status, 400);
}

TEST(HttpRulesTest, TheTokenIsAskedFor) {
  EXPECT_EQ(Judge(With("Bearer 0123456789abcdef"), kWithToken).status, 200);
  EXPECT_EQ(Judge(With("bearer  0123456789abcdef"), kWithToken).status, 200);
  for (const char* wrong :
       {"", "Bearer", "Bearer ", "0123456789abcdef", "Bearer 0123456789abcdee",
        "Bearer 0123456789abcde", "Bearer 0123456789abcdeff",
        "Basic 0123456789abcdef"}) {
    EXPECT_EQ(Judge(With(wrong), kWithToken).status, 401) << wrong;
  }
  EXPECT_EQ(Judge(Get("/metrics"), kWithToken).status, 401);
  HttpRequest twice = With("Bearer 0123456789abcdef");
  twice.authorization.push_back(twice.authorization.front());
  EXPECT_EQ(Judge(twice, kWithToken).status, 401);
  EXPECT_EQ(Judge(Get("/healthz"), kWithToken).status, 200);
}

}  // namespace
}  // namespace gmb::broker
