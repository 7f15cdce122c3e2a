// Measures the cost of allocating and freeing, and the memory that a trace of a
// program's allocations needs: a heap over leases of a gmbd of its own, beside
// the device's own stream-ordered allocator in the same run.
#include <stdlib.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "bench/heap/peers.h"
#include "bench/heap/trace.h"
#include "client/cli/demo/broker_process.h"
#include "client/cli/tenant_identity.h"
#include "device/devices.h"

namespace gmb::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kMostThreads = 16;
// 2.4 ms a GiB on an H200.
constexpr std::chrono::milliseconds kClearingTime{500};

const char kUsage[] =
    "usage: heap_bench [--device cuda:0|GPU-UUID|host:SIZE] [--pool AMOUNT] "
    "[--rounds 31] [TRACE...]\n"
    "Allocate and free, and TRACEs (bench/traces), through a gmbd of its own\n"
    "and beside the device's own allocator: malloc for the host device, which\n"
    "is no peer but a scale; cudaMallocAsync for a GPU, and RMM's pool in a\n"
    "build with it (tools/build-rmm).\n"
    "  --device DEVICE  [the first GPU, else host:4GiB]\n"
    "  --pool AMOUNT    the device pool [gmbd's default]\n";

struct Options {
  std::string device;
  std::string pool;
  int rounds = 31;
  std::vector<std::string> traces;
};

double Nanoseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::nano>(duration).count();
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct PairTimes {
  double allocate = 0;
  double free = 0;
};

// One pair after the other, timed in batches: eight blocks are allocated, and
// freed again. Not a number when there is no memory.
PairTimes TimePairs(Peer& peer, uint64_t bytes, void* stream, int batches) {
  constexpr int kBatch = 8;
  void* blocks[kBatch];
  Clock::duration allocating{};
  Clock::duration freeing{};
  bool failed = false;
  for (int i = 0; i < batches; ++i) {
    const Clock::time_point start = Clock::now();
    for (void*& block : blocks) block = peer.Allocate(bytes, stream);
    const Clock::time_point allocated = Clock::now();
    for (void* block : blocks) peer.Free(block, bytes, stream);
    freeing += Clock::now() - allocated;
    allocating += allocated - start;
    failed |= blocks[kBatch - 1] == nullptr;
  }
  if (failed) return {std::nan(""), std::nan("")};
  return {Nanoseconds(allocating) / (batches * kBatch),
          Nanoseconds(freeing) / (batches * kBatch)};
}

using Peers = std::vector<std::unique_ptr<Peer>>;

void MeasurePairs(const Peers& peers, const Streams& streams, int rounds) {
  std::printf(
      "\nallocate and free, warm, one stream: ns, medians of %d rounds of "
      "4000\n"
      "%-28s %10s %10s %10s %10s\n",
      rounds, "", "bytes", "allocate", "free", "both");
  for (const uint64_t bytes :
       {uint64_t{512}, 64 * kMiB / 1024, kMiB, 32 * kMiB}) {
    std::vector<std::vector<double>> allocate(peers.size());
    std::vector<std::vector<double>> free(peers.size());
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < peers.size(); ++i) {
        TimePairs(*peers[i], bytes, streams[0], 50);
        const PairTimes times = TimePairs(*peers[i], bytes, streams[0], 500);
        allocate[i].push_back(times.allocate);
        free[i].push_back(times.free);
      }
    }
    for (size_t i = 0; i < peers.size(); ++i) {
      const double a = Median(allocate[i]);
      const double f = Median(free[i]);
      std::printf("%-28s %10lu %10.1f %10.1f %10.1f\n",
                  peers[i]->name().c_str(), bytes, a, f, a + f);
    }
  }
}

// All threads begin together, each with a stream of its own; the mean of their
// times for a pair.
double ThreadsRound(Peer& peer, const Streams& streams, uint64_t threads) {
  std::atomic<uint64_t> ready = 0;
  std::atomic<double> total = 0;
  std::vector<std::thread> running;
  for (uint64_t t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      const std::shared_ptr<void> in_thread = streams.InThread();
      TimePairs(peer, 16 << 10, streams[t], 20);
      ++ready;
      while (ready < threads) std::this_thread::yield();
      const PairTimes times = TimePairs(peer, 16 << 10, streams[t], 500);
      total.fetch_add(times.allocate + times.free);
    });
  }
  for (std::thread& thread : running) thread.join();
  return total / static_cast<double>(threads);
}

void MeasureThreads(const Peers& peers, const Streams& streams, int rounds) {
  std::printf(
      "\n16 KiB allocated and freed, a stream for each thread, %u cores: ns a "
      "pair of one thread\n%-28s %10s %10s\n",
      std::thread::hardware_concurrency(), "", "threads", "both");
  for (const uint64_t threads : {uint64_t{1}, uint64_t{4}, kMostThreads}) {
    std::vector<std::vector<double>> times(peers.size());
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < peers.size(); ++i)
        times[i].push_back(ThreadsRound(*peers[i], streams, threads));
    }
    for (size_t i = 0; i < peers.size(); ++i) {
      std::printf("%-28s %10lu %10.1f\n", peers[i]->name().c_str(), threads,
                  Median(times[i]));
    }
  }
}

// Nanoseconds an event; below 0 when it ran out of memory.
double Replay(const Trace& trace, Peer& peer, const Streams& streams) {
  std::vector<void*> blocks(trace.blocks, nullptr);
  std::vector<uint64_t> bytes(trace.blocks, 0);
  bool failed = false;
  const Clock::time_point start = Clock::now();
  for (const Trace::Event& event : trace.events) {
    void* const stream = streams[event.stream];
    if (event.allocates) {
      blocks[event.block] = peer.Allocate(event.bytes, stream);
      failed |= blocks[event.block] == nullptr && event.bytes > 0;
      bytes[event.block] = event.bytes;
    } else {
      peer.Free(std::exchange(blocks[event.block], nullptr), event.bytes,
                stream);
    }
  }
  const double each = Nanoseconds(Clock::now() - start) /
                      static_cast<double>(trace.events.size());
  for (size_t i = 0; i < blocks.size(); ++i) {
    if (blocks[i] != nullptr) peer.Free(blocks[i], bytes[i], streams[0]);
  }
  return failed ? -1 : each;
}

// Each allocator anew, so that what it reserves is the trace's: first the cold
// replay, then as many warm ones as there are rounds.
absl::Status MeasureTrace(const Trace& trace, int rounds,
                          const std::function<absl::StatusOr<Peers>()>& make,
                          const device::DeviceInfo& info) {
  // The driver clears what the allocators before gave back, and who asks for
  // memory meanwhile waits for that: the first of these would.
  std::this_thread::sleep_for(kClearingTime);
  const auto streams = MakeStreams(info.kind, info.uuid, trace.streams);
  if (!streams.ok()) return streams.status();
  absl::StatusOr<Peers> peers = make();
  if (!peers.ok()) return peers.status();
  std::printf("\n%s: %s\n%lu events, %lu streams, most live %.1f MiB\n",
              trace.name.c_str(), trace.source.c_str(), trace.events.size(),
              trace.streams, static_cast<double>(trace.peak_bytes) / kMiB);
  std::printf("%-28s %12s %12s %14s %10s %9s %9s\n", "", "first ns", "again ns",
              "reserved MiB", "unused", "questions", "pieces");
  for (const std::unique_ptr<Peer>& peer : *peers) {
    const double first = Replay(trace, *peer, **streams);
    const auto reserved = static_cast<double>(peer->PeakReservedBytes());
    const uint64_t questions = peer->Questions();
    const uint64_t pieces = peer->Pieces();
    std::vector<double> again;
    again.reserve(static_cast<size_t>(rounds));
    for (int round = 0; round < rounds; ++round)
      again.push_back(Replay(trace, *peer, **streams));
    std::printf("%-28s %12.1f %12.1f %14.1f", peer->name().c_str(), first,
                Median(again), reserved / kMiB);
    if (reserved > 0) {
      std::printf(" %9.1f%%",
                  100 * (1 - static_cast<double>(trace.peak_bytes) / reserved));
    }
    if (questions > 0) std::printf(" %9lu %9lu", questions, pieces);
    std::printf("\n");
  }
  return absl::OkStatus();
}

absl::Status Measure(const Options& options, const std::vector<Trace>& traces,
                     Client* client) {
  const Device& device = client->devices().front();
  const device::DeviceInfo info{.kind = device.kind == DeviceKind::kHost
                                            ? device::DeviceKind::kHost
                                            : device::DeviceKind::kVmm,
                                .uuid = device.uuid,
                                .name = device.name};
  const auto make = [&]() -> absl::StatusOr<Peers> {
    Peers peers;
    absl::StatusOr<std::unique_ptr<Peer>> heap = MakeHeapPeer(client);
    if (!heap.ok()) return heap.status();
    peers.push_back(*std::move(heap));
    for (std::unique_ptr<Peer>& other : MakeOtherPeers(info.kind, info.uuid))
      peers.push_back(std::move(other));
    return peers;
  };
  std::printf("%s (%s)\n", device.name.c_str(), device.uuid.c_str());
  {
    const auto streams = MakeStreams(info.kind, info.uuid, kMostThreads);
    if (!streams.ok()) return streams.status();
    absl::StatusOr<Peers> peers = make();
    if (!peers.ok()) return peers.status();
    MeasurePairs(*peers, **streams, options.rounds);
    absl::StatusOr<std::unique_ptr<Peer>> each =
        MakeHeapEachPeer(client, **streams, kMostThreads);
    if (!each.ok()) return each.status();
    peers->push_back(*std::move(each));
    MeasureThreads(*peers, **streams, options.rounds);
  }
  for (const Trace& trace : traces) {
    if (absl::Status status = MeasureTrace(trace, options.rounds, make, info);
        !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

absl::Status Run(const Options& options, const std::string& dir) {
  std::vector<Trace> traces;
  for (const std::string& path : options.traces) {
    absl::StatusOr<Trace> trace = ReadTrace(path);
    if (!trace.ok()) return trace.status();
    traces.push_back(*std::move(trace));
  }
  const absl::StatusOr<std::string> program = cli::FindBroker();
  if (!program.ok()) return program.status();
  cli::BrokerProcess::Options broker;
  broker.program = *program;
  broker.device_flags = {"--device", options.device, "--drain-deadline", "1s"};
  if (!options.pool.empty()) {
    broker.device_flags.insert(broker.device_flags.end(),
                               {"--pool", options.pool});
  }
  broker.config = "tenants:\n  - {name: bench, limit: 100%}\n";
  broker.dir = dir;
  auto started = cli::BrokerProcess::Start(broker);
  if (!started.ok()) return started.status();
  ClientOptions client_options;
  client_options.socket_dir =
      cli::TenantSocketDir((*started)->socket_dir(), "bench");
  auto client = Client::Connect(std::move(client_options));
  if (!client.ok()) return client.status();
  return Measure(options, traces, client->get());
}

bool Parse(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (!absl::StartsWith(word, "--")) {
      options->traces.push_back(word);
      continue;
    }
    if (i + 1 == argc) return false;
    const std::string value = argv[++i];
    if (word == "--device") {
      options->device = value;
    } else if (word == "--pool") {
      options->pool = value;
    } else if (word != "--rounds" ||
               !absl::SimpleAtoi(value, &options->rounds) ||
               options->rounds < 1) {
      return false;
    }
  }
  if (options->device.empty())
    options->device = device::ProbeCuda().gpus.empty() ? "host:4GiB" : "cuda:0";
  return true;
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  gmb::bench::Options options;
  if (argc == 2 && std::string(argv[1]) == "--help") {
    std::fputs(gmb::bench::kUsage, stdout);
    return 0;
  }
  if (!gmb::bench::Parse(argc, argv, &options)) {
    std::fputs(gmb::bench::kUsage, stderr);
    return 2;
  }
  char dir[] = "/tmp/gmb-heap-bench-XXXXXX";
  if (mkdtemp(dir) == nullptr) return 1;
  const absl::Status status = gmb::bench::Run(options, dir);
  std::error_code ignored;
  std::filesystem::remove_all(dir, ignored);
  if (status.ok()) return 0;
  std::fprintf(stderr, "heap_bench: %s\n", status.ToString().c_str());
  return 1;
}
