// Measures the cost of taking memory from one tenant for another and bringing
// it back, through a real broker with real processes, beside what programs
// would do by themselves in the same run.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/device/bench_device.h"
#include "bench/device/peers.h"
#include "bench/device/plain_copy.h"
#include "bench/quantile.h"
#include "bench/reclaim/figures.h"
#include "bench/reclaim/measure_moves.h"
#include "bench/reclaim/measure_neighbours.h"
#include "bench/reclaim/neighbour.h"
#include "bench/reclaim/options.h"
#include "bench/reclaim/owner.h"
#include "bench/reclaim/stage.h"
#include "client/cli/demo/temp_dir.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kSmallLease = 20 * kMiB;
constexpr uint64_t kLargeLease = 256 * kMiB;
constexpr int kNeighbourRounds = 10;
constexpr int kLargeRounds = 3;

// One peer frees, the next one allocates: before a broker leaves them nothing.
absl::Status MeasurePeers(const ReclaimOptions& options,
                          device::Allocator* allocator, Run* run) {
  const auto peers = FindPeers(allocator->info());
  if (peers.empty()) return absl::OkStatus();
  Peer& peer = *peers.back();
  std::vector<double> seconds;
  for (int i = 0; i < options.rounds; ++i) {
    const absl::StatusOr<uint64_t> before = allocator->FreeBytes();
    if (!before.ok()) return before.status();
    const absl::StatusOr<Peer::Times> times = peer.Run(options.bytes);
    if (!times.ok()) return times.status();
    seconds.push_back(absl::ToDoubleSeconds(times->free + times->allocate));
    if (absl::Status back = WaitForFree(allocator, *before); !back.ok())
      return back;
  }
  run->free_and_allocate = Quantile(seconds, 0.5);
  run->free_and_allocate_name =
      absl::StrCat(peer.free_name(), " + ", peer.allocate_name());
  return absl::OkStatus();
}

std::string Title(const char* what, const Owner::Leases& leases) {
  return absl::StrCat(what, ": ", proto::FormatBytes(leases.total()), " in ",
                      leases.count, leases.count == 1 ? " lease" : " leases");
}

// A section is measured when it is wanted and fits.
template <typename Measure>
absl::Status Section(const ReclaimOptions& options, const char* name,
                     const Run& run, const MovesPlan& plan, Measure measure) {
  if (!options.Wants(name)) return absl::OkStatus();
  std::string why = run.stage->TooLarge(plan.leases.total());
  if (plan.leases.count == 0) why = "skipped: --bytes is smaller than a lease";
  if (!why.empty()) {
    run.figures->Say(plan.section, why);
    return absl::OkStatus();
  }
  std::fprintf(stderr, "reclaim_bench: %s\n", plan.section.c_str());
  const absl::Status status = measure(run, plan);
  if (!status.ok()) {
    run.figures->Say(plan.section, absl::StrCat("failed: ", status.ToString()));
  }
  return status;
}

absl::Status MeasureSections(const ReclaimOptions& options, Run run,
                             bool on_gpu) {
  const Owner::Leases one{options.bytes, 1};
  const Owner::Leases small{kSmallLease, options.bytes / kSmallLease};
  const Owner::Leases large{kLargeLease, options.large_bytes / kLargeLease};
  const Goal copy_rate{.at_least_percent_of_peer = 95};
  const Goal small_rate{.at_least_percent_of_peer = 90};
  const auto plan = [&](const char* what, const Owner::Leases& leases,
                        int rounds) {
    return MovesPlan{Title(what, leases), leases,
                     std::min(options.rounds, rounds),
                     absl::Seconds(options.section_seconds)};
  };
  MovesPlan moves = plan("evict and restore", one, options.rounds);
  moves.evict = moves.restore = copy_rate;
  absl::Status status = Section(options, "moves", run, moves, MeasureMoves);
  if (!status.ok()) return status;
  status = Section(options, "backed", run,
                   plan("take from a backed tenant", one, options.rounds),
                   MeasureBacked);
  if (!status.ok()) return status;
  const MovesPlan beside =
      plan("neighbours while others move", one, kNeighbourRounds);
  if (on_gpu) {
    status = Section(options, "neighbours", run, beside, MeasureNeighbours);
  } else if (options.Wants("neighbours")) {
    run.figures->Say(beside.section, "skipped: neighbours' kernels need a GPU");
  }
  if (!status.ok()) return status;
  run.free_and_allocate = 0;  // was not measured at the sizes that follow
  run.free_and_allocate_name.clear();
  moves = plan("evict and restore", small, options.rounds);
  moves.restore = small_rate;
  status = Section(options, "small", run, moves, MeasureMoves);
  if (!status.ok()) return status;
  return Section(options, "large", run,
                 plan("evict and restore", large, kLargeRounds), MeasureMoves);
}

void Print(const ReclaimOptions& options, const device::DeviceInfo& info,
           const v1::HostPoolStatus& host_pool, const Figures& figures) {
  std::string driver = device::ProbeCuda().driver_version;
  if (driver.empty()) driver = "-";
  if (options.json) {
    std::printf(
        "{\n  \"device\": \"%s\",\n  \"driver\": \"%s\",\n  "
        "\"host_pool_bytes\": %llu,\n  \"rows\": [\n%s\n  ]\n}\n",
        info.name.c_str(), driver.c_str(),
        static_cast<unsigned long long>(host_pool.bytes()),
        figures.Json().c_str());
    return;
  }
  std::printf("%s, driver %s; host pool of %s, %s page-locked, pages: %s%s%s\n",
              info.name.c_str(), driver.c_str(),
              proto::FormatBytes(host_pool.bytes()).c_str(),
              proto::FormatBytes(host_pool.locked_bytes()).c_str(),
              host_pool.pages().c_str(),
              host_pool.problem().empty() ? "" : "; ",
              host_pool.problem().c_str());
  if (info.kind == device::DeviceKind::kHost) {
    std::printf(
        "Host memory: its rates stand for nothing, and no goal is judged.\n");
  }
  figures.Print();
}

absl::Status Bench(const ReclaimOptions& options) {
  const absl::StatusOr<cli::TempDir> dir = cli::TempDir::Make();
  if (!dir.ok()) return dir.status();
  const auto allocator = OpenAllocator(options.device);
  if (!allocator.ok()) return allocator.status();
  const device::DeviceInfo& info = (*allocator)->info();
  const bool on_gpu = info.kind != device::DeviceKind::kHost;
  Figures figures(/*judged=*/on_gpu);
  Run run{};
  run.figures = &figures;
  // Their memory is outside the pool, which is made afterwards.
  auto plain = OpenPlainCopy(info, std::min(options.bytes, kGiB));
  if (!plain.ok()) return plain.status();
  run.plain = plain->get();
  absl::Status status = MeasurePeers(options, allocator->get(), &run);
  if (!status.ok()) return status;
  absl::StatusOr<std::unique_ptr<Stage>> stage =
      Stage::Open(options, dir->path());
  if (!stage.ok()) return stage.status();
  run.stage = stage->get();
  status = MeasureSections(options, run, on_gpu);
  Print(options, info, (*stage)->host_pool(), figures);
  stage->reset();
  if (!options.log.empty()) {
    std::error_code error;
    std::filesystem::copy_file(
        dir->path() + "/gmbd.log", options.log,
        std::filesystem::copy_options::overwrite_existing, error);
    if (error && status.ok())
      return absl::UnavailableError("cannot write " + options.log);
  }
  return status;
}

int Main(int argc, char** argv) {
  const std::string role = argc > 1 ? argv[1] : "";
  Owner::Leases leases{};
  if (role == kOwnerFlag && argc == 6 &&
      absl::SimpleAtoi(argv[4], &leases.bytes_each) &&
      absl::SimpleAtoi(argv[5], &leases.count)) {
    return RunOwner(argv[2], argv[3], leases);
  }
  uint64_t bytes = 0;
  if (role == kNeighbourFlag && argc == 6 && absl::SimpleAtoi(argv[5], &bytes))
    return RunNeighbour(argv[2], argv[3], argv[4], bytes);
  const absl::StatusOr<ReclaimOptions> options =
      ParseReclaimOptions(argc, argv);
  if (!options.ok()) {
    std::fprintf(stderr, "reclaim_bench: %s\n%s",
                 std::string(options.status().message()).c_str(),
                 kReclaimUsage);
    return 2;
  }
  if (options->help) {
    std::printf("%s", kReclaimUsage);
    return 0;
  }
  const absl::Status status = Bench(*options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "reclaim_bench: %s\n", status.ToString().c_str());
  return 1;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) { return gmb::bench::Main(argc, argv); }
