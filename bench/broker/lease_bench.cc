#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/broker/breakdown.h"
#include "bench/broker/lease_rounds.h"
#include "bench/broker/results.h"
#include "bench/device/bench_device.h"
#include "bench/device/peers.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/demo/temp_dir.h"
#include "client/cli/tenant_identity.h"
#include "device/devices.h"

// Measures the cost of a lease to a process that asks a real broker for it,
// beside memory of its own in the same run.

namespace gmb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kSizes[] = {64 * kMiB, 8 * kGiB, 120 * kGiB};
constexpr uint64_t kSmall = 64 * kMiB;  // of which several fit in any pool
constexpr uint64_t kLarge = 64 * kGiB;
constexpr int kFewRounds = 10;  // of large sizes, which take long
constexpr uint64_t kKillBytes = 8 * kGiB;
constexpr int kKills = 20;

constexpr char kTenants[] =
    "tenants:\n  - {name: a, limit: 100%}\n  - {name: b, limit: 100%}\n";

struct Options {
  std::string device = "host:2GiB";
  std::string pool;
  std::string socket_dir;
  int rounds = 30;
  bool json = false;
};

int Rounds(const Options& options, uint64_t bytes) {
  return bytes > kLarge ? std::min(options.rounds, kFewRounds) : options.rounds;
}

// Names the steps to compare with, the last peer being the closest one.
absl::Status MeasurePeers(const Options& options, device::Allocator* allocator,
                          const std::vector<std::unique_ptr<Peer>>& peers,
                          const std::vector<uint64_t>& sizes, Bench* bench) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    bench->allocate = peer->allocate_name();
    bench->free = peer->free_name();
    bench->allocate_and_free =
        absl::StrCat(bench->allocate, " + ", bench->free);
    for (const uint64_t bytes : sizes) {
      for (int i = 0; i < Rounds(options, bytes); ++i) {
        const absl::StatusOr<uint64_t> before = allocator->FreeBytes();
        if (!before.ok()) return before.status();
        const absl::StatusOr<Peer::Times> times = peer->Run(bytes);
        if (!times.ok()) break;  // not that much is free
        bench->results->Add(bytes, bench->allocate, times->allocate);
        bench->results->Add(bytes, bench->free, times->free);
        bench->results->Add(bytes, bench->allocate_and_free,
                            times->allocate + times->free);
        if (absl::Status back = WaitForFree(allocator, *before); !back.ok())
          return back;
      }
    }
  }
  return absl::OkStatus();
}

// Connections to a broker, and the broker itself where it is ours.
struct Setup {
  std::unique_ptr<cli::BrokerProcess> broker;
  std::optional<cli::AdminClient> admin;
  std::unique_ptr<Client> a;
  std::unique_ptr<Client> b;
};

absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& socket_dir,
                                                const char* tenant) {
  ClientOptions options;
  options.socket_dir = cli::TenantSocketDir(socket_dir, tenant);
  return Client::Connect(std::move(options));
}

absl::StatusOr<Setup> Open(const Options& options, const std::string& dir,
                           const std::string& reuse_for, Bench* bench) {
  Setup setup;
  bench->socket_dir = options.socket_dir;
  if (options.socket_dir.empty()) {
    std::filesystem::create_directory(dir);
    cli::BrokerProcess::Options broker;
    absl::StatusOr<std::string> program = cli::FindBroker();
    if (!program.ok()) return program.status();
    broker.program = *std::move(program);
    broker.device_flags = {"--device", options.device, "--reuse-for",
                           reuse_for};
    if (!options.pool.empty()) {
      broker.device_flags.insert(broker.device_flags.end(),
                                 {"--pool", options.pool});
    }
    if (absl::StartsWith(options.device, "ipc:"))
      broker.device_flags.push_back("--allow-ipc");
    broker.config = kTenants;
    broker.dir = dir;
    auto started = cli::BrokerProcess::Start(broker);
    if (!started.ok()) return started.status();
    setup.broker = *std::move(started);
    bench->socket_dir = setup.broker->socket_dir();
  }
  auto admin = cli::AdminClient::Connect(bench->socket_dir);
  if (!admin.ok()) return admin.status();
  setup.admin.emplace(*std::move(admin));
  auto a = Connect(bench->socket_dir, kTenantA);
  if (!a.ok()) return a.status();
  auto b = Connect(bench->socket_dir, kTenantB);
  if (!b.ok()) return b.status();
  setup.a = *std::move(a);
  setup.b = *std::move(b);
  bench->a = setup.a.get();
  bench->b = setup.b.get();
  bench->uuid = setup.a->devices().front().uuid;
  return setup;
}

// The sizes to measure in a pool of `pool_bytes`.
std::vector<uint64_t> Capped(uint64_t pool_bytes) {
  std::vector<uint64_t> sizes;
  for (const uint64_t bytes : kSizes) {
    const uint64_t capped = std::min(bytes, pool_bytes);
    if (sizes.empty() || sizes.back() != capped) sizes.push_back(capped);
  }
  return sizes;
}

// A broker that keeps nothing for its last tenant, so that every lease is of
// ready slabs.
absl::Status RunFresh(const Options& options, const std::string& dir,
                      const std::vector<uint64_t>& sizes, Bench* bench) {
  absl::StatusOr<Setup> setup = Open(options, dir, "0s", bench);
  if (!setup.ok()) return setup.status();
  bench->admin = &*setup->admin;
  for (const uint64_t bytes : sizes) {
    const int rounds = Rounds(options, bytes);
    absl::Status status = MeasureFresh(*bench, bytes, rounds);
    if (status.ok()) status = MeasureBreakdown(*bench, bytes, rounds);
    if (status.ok() && bytes <= kSmall)
      status = MeasureInARow(*bench, bytes, rounds);
    if (status.ok()) status = MeasureAtRest(*bench, bytes, rounds);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunShared(const Options& options, const std::string& dir,
                       const std::vector<uint64_t>& sizes, Bench* bench) {
  absl::StatusOr<Setup> setup = Open(options, dir, "5s", bench);
  if (!setup.ok()) return setup.status();
  bench->admin = &*setup->admin;
  for (const uint64_t bytes : sizes) {
    const int rounds = Rounds(options, bytes);
    absl::Status status = MeasureReuse(*bench, bytes, rounds);
    if (status.ok()) status = MeasureHandOver(*bench, bytes, rounds);
    if (!status.ok()) return status;
  }
  return MeasureKill(*bench, std::min(kKillBytes, sizes.back()), kKills,
                     dir + "/victim.log");
}

// The size of the pool, from a broker that is asked and stopped again.
absl::StatusOr<uint64_t> FindPoolBytes(const Options& options,
                                       const std::string& dir, Bench bench) {
  const absl::StatusOr<Setup> setup = Open(options, dir, "0s", &bench);
  if (!setup.ok()) return setup.status();
  return PoolBytes(bench);
}

absl::Status Run(const Options& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  const auto allocator = OpenAllocator(options.device);
  if (!allocator.ok()) return allocator.status();
  // Their contexts take memory, so they come before the pool's size is known.
  const auto peers = FindPeers((*allocator)->info());
  Results results;
  Bench bench{};
  bench.results = &results;
  const absl::StatusOr<uint64_t> before = (*allocator)->FreeBytes();
  if (!before.ok()) return before.status();
  const absl::StatusOr<uint64_t> pool =
      FindPoolBytes(options, dir->path() + "/0", bench);
  if (!pool.ok()) return pool.status();
  const std::vector<uint64_t> sizes = Capped(*pool);
  absl::Status status;
  if (options.socket_dir.empty())
    status = WaitForFree(allocator->get(), *before);
  status.Update(MeasureFreeReading(allocator->get(), sizes.front(),
                                   options.rounds, &results));
  // First, since a broker leaves them no memory.
  status.Update(MeasurePeers(options, allocator->get(), peers, sizes, &bench));
  if (status.ok())
    status = RunFresh(options, dir->path() + "/1", sizes, &bench);
  if (status.ok() && options.socket_dir.empty())
    status = WaitForFree(allocator->get(), *before - std::min(*before, kGiB));
  if (status.ok())
    status = RunShared(options, dir->path() + "/2", sizes, &bench);
  const std::string driver = device::ProbeCuda().driver_version;
  if (options.json) {
    std::printf(
        "{\n  \"device\": \"%s\",\n  \"driver\": \"%s\",\n  "
        "\"pool_bytes\": %llu,\n  \"rows\": [\n%s\n  ]\n}\n",
        (*allocator)->info().name.c_str(), driver.c_str(),
        static_cast<unsigned long long>(*pool), results.Json().c_str());
  } else {
    std::printf("%s, driver %s, a pool of %llu MiB\n",
                (*allocator)->info().name.c_str(),
                driver.empty() ? "-" : driver.c_str(),
                static_cast<unsigned long long>(*pool / kMiB));
    results.Print();
  }
  return status;
}

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const absl::string_view arg = argv[i];
    if (arg == "--json") {
      options->json = true;
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (arg == "--device") {
      options->device = value;
    } else if (arg == "--pool") {
      options->pool = value;
    } else if (arg == "--socket-dir") {
      options->socket_dir = value;
    } else if (arg != "--repetitions" ||
               !absl::SimpleAtoi(value, &options->rounds) ||
               options->rounds < 1) {
      return false;
    }
  }
  return true;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  uint64_t bytes = 0;
  if (argc == 5 && std::string(argv[1]) == gmb::bench::kVictimFlag &&
      absl::SimpleAtoi(argv[4], &bytes)) {
    return gmb::bench::RunVictim(argv[2], argv[3], bytes);
  }
  gmb::bench::Options options;
  if (!gmb::bench::ParseOptions(argc, argv, &options)) {
    std::fprintf(stderr,
                 "usage: lease_bench [--device host:2GiB|cuda:0|GPU-UUID] "
                 "[--pool SIZE] [--repetitions 30] [--json]\n"
                 "                   [--socket-dir DIR: of a broker with the "
                 "tenants a and b]\n");
    return 2;
  }
  const absl::Status status = gmb::bench::Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "lease_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
