// A program that leases nothing: there is no broker where it looks, and it
// says so as any program of a user would.
#include <cstdio>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "gmb/client.h"
#include "gmb/version.h"

int main() {
  gmb::ClientOptions options;
  options.socket_dir = "/nonexistent/gmb";
  options.connect_timeout = absl::Seconds(1);
  const auto client = gmb::Client::Connect(options);
  if (client.ok()) {
    std::puts("connected to a broker that is not there");
    return 1;
  }
  std::printf("gmb %s: %s\n", GMB_VERSION_STRING,
              std::string(client.status().message()).c_str());
  return client.status().code() == absl::StatusCode::kUnavailable ? 0 : 1;
}
