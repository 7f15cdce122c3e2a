// The processes that a large broker serves: many sessions each, which hold
// small leases and do nothing.
#include "bench/broker/scale_fleet.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "client/cli/installed.h"
#include "client/cli/tenant_identity.h"
#include "gmb/client.h"

namespace gmb::bench {
namespace {

constexpr absl::Duration kFleetPatience = absl::Minutes(5);

// How many of `all` fall to the one of that number.
uint32_t ShareOf(uint32_t all, uint32_t number, uint32_t of) {
  return all / of + (number < all % of ? 1 : 0);
}

struct Held {
  std::unique_ptr<Client> client;
  std::vector<Lease> leases;
};

absl::Status Hold(Client* client, const std::string& device, uint32_t leases,
                  std::vector<Lease>* held) {
  AcquireOptions options;
  options.device = device;
  options.contents = Contents::kResident;
  options.wait = kFleetPatience;
  for (uint32_t i = 0; i < leases; ++i) {
    absl::StatusOr<Lease> lease = client->Acquire(kScaleLeaseBytes, options);
    if (!lease.ok()) return lease.status();
    held->push_back(*std::move(lease));
  }
  return absl::OkStatus();
}

absl::StatusOr<Held> OpenOne(const FleetPlan& plan, uint32_t session) {
  ClientOptions options;
  options.socket_dir = cli::TenantSocketDir(
      plan.socket_dir, ScaleTenant(session % plan.tenants));
  options.connect_timeout = kFleetPatience;
  Held held;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  held.client = *std::move(client);
  std::string first;
  for (const Device& device : held.client->devices()) {
    if (device.uuid != plan.second_device) first = device.uuid;
  }
  absl::Status done =
      Hold(held.client.get(), first,
           ShareOf(plan.leases, session, plan.sessions), &held.leases);
  if (done.ok() && session < plan.second_leases)
    done = Hold(held.client.get(), plan.second_device, 1, &held.leases);
  if (!done.ok()) return done;
  return held;
}

}  // namespace

std::string ScaleTenant(uint32_t number) {
  return absl::StrFormat("t%05d", number);
}

absl::StatusOr<Fleet> Fleet::Start(const FleetPlan& plan) {
  Fleet fleet;
  for (uint32_t i = 0; i < plan.processes; ++i) {
    absl::StatusOr<Ship> ship = Launch(plan, i);
    if (!ship.ok()) return ship.status();
    fleet.ships_.push_back(*std::move(ship));
  }
  for (Ship& ship : fleet.ships_) {
    const absl::StatusOr<std::string> line =
        ship.lines.Receive(absl::Now() + kFleetPatience);
    if (!line.ok()) return line.status();
    if (*line != "held") return absl::InternalError(*line);
  }
  return fleet;
}

void Fleet::Kill() const {
  for (const Ship& ship : ships_) ship.process.Signal(SIGKILL);
}

absl::StatusOr<Fleet::Ship> Fleet::Launch(const FleetPlan& plan,
                                          uint32_t number) {
  absl::StatusOr<cli::ChannelPair> pair = cli::LineChannel::Pair();
  if (!pair.ok()) return pair.status();
  cli::ChildProcess::Options options;
  options.command = {cli::ThisProgram(),
                     kFleetFlag,
                     plan.socket_dir,
                     absl::StrCat(plan.tenants),
                     absl::StrCat(plan.sessions),
                     absl::StrCat(plan.leases),
                     absl::StrCat(plan.processes),
                     absl::StrCat(number),
                     absl::StrCat(plan.second_leases),
                     plan.second_device};
  options.stdout_fd = pair->theirs.fd();
  options.log_path = plan.log_path;
  absl::StatusOr<cli::ChildProcess> process = cli::ChildProcess::Start(options);
  if (!process.ok()) return process.status();
  { const cli::LineChannel closed = std::move(pair->theirs); }
  return Ship{*std::move(process), std::move(pair->ours)};
}

int RunShip(int argc, char** argv) {
  FleetPlan plan;
  uint32_t number = 0;
  const std::array<uint32_t*, 6> numbers = {&plan.tenants, &plan.sessions,
                                            &plan.leases,  &plan.processes,
                                            &number,       &plan.second_leases};
  constexpr int kFirst = 3;
  if (argc != kFirst + static_cast<int>(numbers.size()) + 1) return 2;
  plan.socket_dir = argv[2];
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!absl::SimpleAtoi(argv[kFirst + i], numbers.at(i))) return 2;
  }
  plan.second_device = argv[argc - 1];
  std::vector<Held> all;
  for (uint32_t i = number; i < plan.sessions; i += plan.processes) {
    absl::StatusOr<Held> held = OpenOne(plan, i);
    if (!held.ok()) {
      std::printf("session %u: %s\n", i, held.status().ToString().c_str());
      std::fflush(stdout);
      return 1;
    }
    all.push_back(*std::move(held));
  }
  std::puts("held");
  std::fflush(stdout);
  for (;;) ::pause();
}

}  // namespace gmb::bench
