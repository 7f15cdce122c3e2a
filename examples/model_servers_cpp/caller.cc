#include "caller.h"

#include <nlohmann/json.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace model_servers {
namespace {

using Json = nlohmann::json;

// Longer than a server waits for its turn, its memory and others', together.
constexpr int kPatienceSeconds = 60;

Json Parse(const std::string& text) {
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

std::string TextOf(const Json& body, const char* field) {
  if (!body.is_object() || !body.contains(field) || !body[field].is_string()) {
    return "";
  }
  return body[field].get<std::string>();
}

bool ReadNumber(const Json& body, const char* field, uint64_t* number) {
  if (!body.is_object() || !body.contains(field) ||
      !body[field].is_number_unsigned()) {
    return false;
  }
  *number = body[field].get<uint64_t>();
  return true;
}

Reply ReplyFrom(const httplib::Response& response) {
  Reply reply;
  const Json body = Parse(response.body);
  if (response.status == 200) {
    const bool readable = body.is_object() && body.contains("met_evicted") &&
                          body["met_evicted"].is_boolean() &&
                          absl::SimpleAtoi(TextOf(body, "sum"), &reply.sum);
    if (readable) {
      reply.kind = Reply::Kind::kServed;
      reply.met_evicted = body["met_evicted"].get<bool>();
    } else {
      reply.error = absl::StrCat("not an answer: ", response.body);
    }
    return reply;
  }
  if (response.status == 503) reply.kind = Reply::Kind::kRefused;
  reply.error = absl::StrCat(response.status, ": ", TextOf(body, "error"));
  return reply;
}

}  // namespace

Caller::Caller(int port) : client_("127.0.0.1", port) {
  client_.set_keep_alive(true);
  client_.set_tcp_nodelay(true);
  client_.set_read_timeout(kPatienceSeconds);
}

Reply Caller::Infer(uint64_t rows) {
  const absl::Time began = absl::Now();
  const httplib::Result result = client_.Post(
      "/infer", Json({{"batch", rows}}).dump(), "application/json");
  Reply reply;
  if (result) {
    reply = ReplyFrom(*result);
  } else {
    reply.error = httplib::to_string(result.error());
  }
  reply.took = absl::Now() - began;
  return reply;
}

absl::StatusOr<ServerStats> Caller::Stats() {
  const httplib::Result result = client_.Get("/stats");
  if (!result)
    return absl::UnavailableError(httplib::to_string(result.error()));
  const Json body = Parse(result->body);
  ServerStats stats;
  if (!ReadNumber(body, "requests", &stats.requests) ||
      !ReadNumber(body, "refused", &stats.refused) ||
      !ReadNumber(body, "held_bytes", &stats.held_bytes) ||
      !ReadNumber(body, "peak_held_bytes", &stats.peak_held_bytes)) {
    return absl::InternalError(absl::StrCat("not statistics: ", result->body));
  }
  return stats;
}

}  // namespace model_servers
