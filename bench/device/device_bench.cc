#include <poll.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/device/peers.h"
#include "bench/device/steps.h"
#include "device/devices.h"
#include "tests/device/remote_mapper.h"

// Measures the steps of a lease on a device: created and destroyed here, mapped
// and unmapped in another process, beside what a program would do by itself.

namespace gmb::bench {
namespace {

using device::Allocator;
using device::DeviceKind;
using device::RemoteMapper;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kGiB = uint64_t{1} << 30;
constexpr uint64_t kLargestSlab = kGiB;

struct Options {
  std::string device = "auto";  // host | vmm:NAME | ipc:NAME | auto
  int repetitions = 30;
  bool json = false;
};

// All times of one step at one size.
struct Series {
  std::string step;
  std::vector<double> microseconds;

  double Quantile(double q) {
    std::sort(microseconds.begin(), microseconds.end());
    return microseconds[static_cast<size_t>(q * (microseconds.size() - 1))];
  }
};

class Table {
 public:
  void Add(const std::string& step, absl::Duration time) {
    for (Series& series : all_) {
      if (series.step != step) continue;
      series.microseconds.push_back(absl::ToDoubleMicroseconds(time));
      return;
    }
    all_.push_back({step, {absl::ToDoubleMicroseconds(time)}});
  }

  void Print(uint64_t bytes, size_t slabs) {
    std::printf("\n%llu MiB in %zu slab%s, us\n",
                static_cast<unsigned long long>(bytes / kMiB), slabs,
                slabs == 1 ? "" : "s");
    std::printf("  %-28s %12s %12s %12s %6s\n", "", "median", "p10", "p90",
                "n");
    for (Series& series : all_) {
      std::printf("  %-28s %12.1f %12.1f %12.1f %6zu\n", series.step.c_str(),
                  series.Quantile(0.5), series.Quantile(0.1),
                  series.Quantile(0.9), series.microseconds.size());
    }
    std::fflush(stdout);
  }

  void AppendJson(uint64_t bytes, size_t slabs, std::string* json) {
    for (Series& series : all_) {
      absl::StrAppend(json, json->empty() ? "" : ",\n",
                      "    {\"bytes\": ", bytes, ", \"slabs\": ", slabs,
                      ", \"step\": \"", series.step,
                      "\", \"median_us\": ", series.Quantile(0.5),
                      ", \"p10_us\": ", series.Quantile(0.1),
                      ", \"p90_us\": ", series.Quantile(0.9),
                      ", \"n\": ", series.microseconds.size(), "}");
    }
  }

 private:
  std::vector<Series> all_;  // in the order of their first appearance
};

std::vector<uint64_t> SplitIntoSlabs(uint64_t bytes, DeviceKind kind) {
  if (kind == DeviceKind::kIpc) return {bytes};  // one slab a range
  std::vector<uint64_t> slabs;
  for (; bytes > 0; bytes -= slabs.back()) {
    slabs.push_back(std::min(bytes, kLargestSlab));
  }
  return slabs;
}

// So that one repetition does not pay for the clearing of the one before.
absl::Status WaitForFree(Allocator* allocator, uint64_t bytes) {
  const absl::Time deadline = absl::Now() + absl::Seconds(20);
  for (;;) {
    absl::StatusOr<uint64_t> now = allocator->FreeBytes();
    if (!now.ok()) return now.status();
    if (*now >= bytes) return absl::OkStatus();
    if (absl::Now() > deadline) {
      return absl::DeadlineExceededError("freed memory did not come back");
    }
    poll(nullptr, 0, 1);
  }
}

// One lease through our own interfaces.
absl::Status RunLease(Allocator* allocator, RemoteMapper* client,
                      const std::vector<uint64_t>& slab_bytes, Table* table) {
  uint64_t total_bytes = 0;
  for (const uint64_t bytes : slab_bytes) total_bytes += bytes;
  std::vector<device::CreatedSlab> slabs;
  absl::Time start = absl::Now();
  for (const uint64_t bytes : slab_bytes) {
    absl::StatusOr<device::CreatedSlab> slab = allocator->Create(bytes);
    if (!slab.ok()) return slab.status();
    slabs.push_back(*std::move(slab));
  }
  const absl::Duration create = absl::Now() - start;
  absl::Status status = client->Reserve(total_bytes);
  const absl::Duration reserve = client->elapsed();
  for (size_t i = 0; i < slabs.size(); ++i) {
    status.Update(client->AddSlab(slabs[i].exported, slab_bytes[i]));
    slabs[i].exported = device::ShareableHandle();
  }
  if (status.ok()) status = client->Map();
  const absl::Duration map = client->elapsed();
  if (status.ok()) status = client->Unmap();
  const absl::Duration unmap = client->elapsed();
  start = absl::Now();
  for (const device::CreatedSlab& slab : slabs) {
    status.Update(allocator->Destroy(slab.key));
  }
  if (!status.ok()) return status;
  const absl::Duration destroy = absl::Now() - start;
  table->Add("Create (create + export)", create);
  table->Add("Reserve", reserve);
  table->Add("Map (import + map + access)", map);
  table->Add("Unmap", unmap);
  table->Add("Destroy", destroy);
  table->Add("client: Map + Unmap", map + unmap);
  table->Add("all of the above", create + reserve + map + unmap + destroy);
  return status;
}

absl::Status RunPeers(const std::vector<std::unique_ptr<Peer>>& peers,
                      Allocator* allocator, uint64_t bytes,
                      uint64_t free_before, Table* table) {
  for (const std::unique_ptr<Peer>& peer : peers) {
    absl::StatusOr<Peer::Times> times = peer->Run(bytes);
    if (!times.ok()) return times.status();
    table->Add(peer->allocate_name(), times->allocate);
    table->Add(peer->free_name(), times->free);
    table->Add(absl::StrCat(peer->allocate_name(), " + ", peer->free_name()),
               times->allocate + times->free);
    absl::Status status = WaitForFree(allocator, free_before);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status RunSize(Allocator* allocator, RemoteMapper* client,
                     const std::vector<std::unique_ptr<Peer>>& peers,
                     uint64_t bytes, const Options& options,
                     std::string* json) {
  const std::vector<uint64_t> slabs =
      SplitIntoSlabs(bytes, allocator->info().kind);
  Table table;
  absl::StatusOr<uint64_t> free_bytes = allocator->FreeBytes();
  if (!free_bytes.ok()) return free_bytes.status();
  // Other programs on the device may take a little meanwhile.
  const uint64_t settled = *free_bytes - std::min(*free_bytes, 64 * kMiB);
  for (int i = 0; i < options.repetitions; ++i) {
    absl::Status status = RunLease(allocator, client, slabs, &table);
    status.Update(WaitForFree(allocator, settled));
    if (status.ok()) {
      status = RunPeers(peers, allocator, bytes, settled, &table);
    }
    if (!status.ok()) return status;
    if (allocator->info().kind == DeviceKind::kVmm) {
      absl::StatusOr<std::vector<Step>> steps =
          RunDriverSteps(allocator->info(), slabs);
      if (!steps.ok()) return steps.status();
      for (const auto& [name, time] : *steps) {
        table.Add(absl::StrCat("driver: ", name), time);
      }
      status = WaitForFree(allocator, settled);
      if (!status.ok()) return status;
    }
  }
  if (options.json) {
    table.AppendJson(bytes, slabs.size(), json);
  } else {
    table.Print(bytes, slabs.size());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Allocator>> OpenDevice(std::string name) {
  if (name == "auto") {
    const device::CudaProbe probe = device::ProbeCuda();
    name = probe.gpus.empty() ? "host" : "vmm:" + probe.gpus[0].uuid;
  }
  absl::string_view rest = name;
  if (absl::ConsumePrefix(&rest, "vmm:")) {
    return device::OpenVmmAllocator(std::string(rest));
  }
  if (absl::ConsumePrefix(&rest, "ipc:")) {
    return device::OpenIpcAllocator(std::string(rest));
  }
  if (name != "host") {
    return absl::InvalidArgumentError(
        absl::StrCat("no device of this name: ", name));
  }
  // Nothing touches the memory, so this needs none.
  return device::OpenHostAllocator({.capacity_bytes = 128 * kGiB});
}

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (arg == "--json") {
      options->json = true;
    } else if (absl::ConsumePrefix(&arg, "--device=")) {
      options->device = std::string(arg);
    } else if (!absl::ConsumePrefix(&arg, "--repetitions=") ||
               !absl::SimpleAtoi(arg, &options->repetitions) ||
               options->repetitions < 1) {
      std::fprintf(stderr,
                   "usage: device_bench [--device=auto|host|vmm:NAME|ipc:NAME] "
                   "[--repetitions=30] [--json]\n");
      return false;
    }
  }
  return true;
}

absl::Status Run(const Options& options) {
  auto allocator = OpenDevice(options.device);
  if (!allocator.ok()) return allocator.status();
  const device::DeviceInfo& info = (*allocator)->info();
  auto client = RemoteMapper::Start(info);
  if (!client.ok()) return client.status();
  const std::vector<std::unique_ptr<Peer>> peers = FindPeers(info);
  const std::string driver = device::ProbeCuda().driver_version;
  std::string json;
  if (!options.json) {
    std::printf("%s %s, driver %s, %d repetitions\n", info.name.c_str(),
                info.uuid.c_str(), driver.empty() ? "-" : driver.c_str(),
                options.repetitions);
  }
  for (const uint64_t bytes :
       {2 * kMiB, 64 * kMiB, kGiB, 8 * kGiB, 120 * kGiB}) {
    absl::StatusOr<uint64_t> free_bytes = (*allocator)->FreeBytes();
    if (!free_bytes.ok()) return free_bytes.status();
    if (bytes > *free_bytes) {
      std::fprintf(stderr, "left out, not free: %llu MiB\n",
                   static_cast<unsigned long long>(bytes / kMiB));
      continue;
    }
    absl::Status status =
        RunSize(allocator->get(), client->get(), peers, bytes, options, &json);
    if (!status.ok()) return status;
  }
  if (options.json) {
    std::printf(
        "{\n  \"device\": \"%s\",\n  \"uuid\": \"%s\",\n  \"driver\": "
        "\"%s\",\n  \"rows\": [\n%s\n  ]\n}\n",
        info.name.c_str(), info.uuid.c_str(), driver.c_str(), json.c_str());
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  if (const auto status = gmb::device::RunIfRemoteMapper(argc, argv)) {
    return *status;
  }
  gmb::bench::Options options;
  if (!gmb::bench::ParseOptions(argc, argv, &options)) return 2;
  const absl::Status status = gmb::bench::Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "device_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
