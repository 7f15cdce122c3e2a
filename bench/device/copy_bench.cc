#include <fcntl.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <variant>
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
#include "bench/device/destroyer.h"
#include "bench/device/plain_copy.h"
#include "device/devices.h"
#include "device/hostpool/copier.h"
#include "device/hostpool/host_pool.h"
#include "device/hostpool/page_locker.h"

// Evicts and restores leases through the copier, with the slabs destroyed and
// created as the copies go, beside plain copies of the same bytes between
// memory of this process, in the same run.

namespace gmb::bench {
namespace {

using device::Allocator;
using device::Copier;
using device::CopyDirection;
using device::CreatedSlab;
using device::DeviceKind;
using device::HostPool;

constexpr uint64_t kMiB = uint64_t{1} << 20;

struct Options {
  std::string device = "auto";  // host | vmm:NAME | auto
  int repetitions = 30;
  uint64_t total_mib = 0;  // 0: 8 GiB on a GPU, 1 GiB on the host device
  device::CopyPacing pacing;
};

struct Series {
  std::vector<double> seconds;
  double Quantile(double q) {
    std::sort(seconds.begin(), seconds.end());
    return seconds[static_cast<size_t>(q * (seconds.size() - 1))];
  }
};

// Counts copies that are done.
class Copies {
 public:
  void Done(absl::Status status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++done_;
    status_.Update(std::move(status));
    changed_.notify_all();
  }
  absl::Status WaitFor(size_t copies) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return done_ >= copies; });
    return status_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  size_t done_ = 0;
  absl::Status status_;
};

class CopyBench {
 public:
  CopyBench(Allocator* allocator, Copier* copier, PlainCopy* plain)
      : allocator_(allocator),
        copier_(copier),
        plain_(plain),
        destroyer_(allocator) {}

  // `total_bytes` in slabs of this size (the last may be smaller).
  absl::Status Run(uint64_t total_bytes, uint64_t slab_bytes, int repetitions) {
    sizes_.clear();
    for (uint64_t left = total_bytes; left > 0; left -= sizes_.back()) {
      sizes_.push_back(std::min(left, slab_bytes));
    }
    std::map<std::string, Series> series;
    const auto time = [&](const char* what, absl::Duration took) {
      series[what].seconds.push_back(absl::ToDoubleSeconds(took));
    };
    if (absl::Status status = Create(); !status.ok()) return status;
    for (int i = -1; i < repetitions; ++i) {  // -1 warms up
      absl::StatusOr<absl::Duration> plain_out =
          plain_->Run(CopyDirection::kOut, total_bytes);
      absl::StatusOr<absl::Duration> evict = Evict();
      if (!evict.ok()) return evict.status();
      if (!plain_out.ok()) return plain_out.status();
      if (absl::Status status = WaitUntilCleared(total_bytes); !status.ok()) {
        return status;
      }
      absl::StatusOr<absl::Duration> plain_in =
          plain_->Run(CopyDirection::kIn, total_bytes);
      absl::StatusOr<absl::Duration> restore = Restore();
      if (!restore.ok()) return restore.status();
      if (!plain_in.ok()) return plain_in.status();
      if (i < 0) continue;
      time("1 plain copy to host", *plain_out);
      time("2 evict: copy + destroy", *evict);
      time("3 plain copy to device", *plain_in);
      time("4 restore: create + copy", *restore);
    }
    Print(total_bytes, &series);
    for (const CreatedSlab& slab : slabs_) {
      destroyer_.Push(slab.key, absl::OkStatus());
    }
    const size_t slabs = std::exchange(slabs_, {}).size();
    return destroyer_.WaitFor(slabs);
  }

 private:
  absl::Status Create() {
    for (const uint64_t bytes : sizes_) {
      absl::StatusOr<CreatedSlab> slab = allocator_->Create(bytes);
      if (!slab.ok()) return slab.status();
      slabs_.push_back(*std::move(slab));
    }
    return absl::OkStatus();
  }

  device::CopyJob Job(CopyDirection direction, size_t i, uint64_t offset) {
    const auto& fd = std::get<base::UniqueFd>(slabs_[i].exported);
    return {.direction = direction,
            .slab = std::make_shared<const device::ShareableHandle>(
                base::UniqueFd(fcntl(fd.get(), F_DUPFD_CLOEXEC, 0))),
            .slab_bytes = sizes_[i],
            .room = {{offset, sizes_[i]}},
            .done = {}};
  }

  // From the first push until the last slab is destroyed.
  absl::StatusOr<absl::Duration> Evict() {
    const absl::Time start = absl::Now();
    uint64_t offset = 0;
    for (size_t i = 0; i < slabs_.size(); ++i) {
      device::CopyJob job = Job(CopyDirection::kOut, i, offset);
      offset += sizes_[i];
      job.done = [this, i](absl::Status status) {
        slabs_[i].exported = device::ShareableHandle();
        destroyer_.Push(slabs_[i].key, std::move(status));
      };
      copier_->Push(std::move(job));
    }
    copier_->Wake();
    const absl::Status status = destroyer_.WaitFor(slabs_.size());
    if (!status.ok()) return status;
    const absl::Duration took = absl::Now() - start;
    slabs_.clear();
    return took;
  }

  // From the first create until the last slab holds its contents.
  absl::StatusOr<absl::Duration> Restore() {
    Copies copies;
    const absl::Time start = absl::Now();
    absl::Status status;
    uint64_t offset = 0;
    for (size_t i = 0; i < sizes_.size() && status.ok(); ++i) {
      absl::StatusOr<CreatedSlab> slab = allocator_->Create(sizes_[i]);
      status = slab.status();
      if (!slab.ok()) break;
      slabs_.push_back(*std::move(slab));
      device::CopyJob job = Job(CopyDirection::kIn, i, offset);
      offset += sizes_[i];
      job.done = [&copies](absl::Status copied) { copies.Done(copied); };
      copier_->Push(std::move(job));
      copier_->Wake();
    }
    status.Update(copies.WaitFor(slabs_.size()));
    if (!status.ok()) return status;
    return absl::Now() - start;
  }

  // A restore waits for the driver's clearing of what was evicted a moment
  // before only where nobody else used the time; here the plain copy does.
  absl::Status WaitUntilCleared(uint64_t bytes) {
    for (int i = 0; i < 20'000; ++i) {
      absl::StatusOr<uint64_t> free_bytes = allocator_->FreeBytes();
      if (!free_bytes.ok()) return free_bytes.status();
      if (*free_bytes >= bytes) return absl::OkStatus();
      std::this_thread::yield();
    }
    return absl::DeadlineExceededError("freed memory did not come back");
  }

  void Print(uint64_t bytes, std::map<std::string, Series>* series) {
    std::printf("\n%llu MiB in %zu slabs\n",
                static_cast<unsigned long long>(bytes / kMiB), sizes_.size());
    std::printf("  %-26s %10s %10s %10s %8s %6s\n", "", "median ms", "p10",
                "p90", "GB/s", "n");
    for (auto& [name, times] : *series) {
      const double median = times.Quantile(0.5);
      std::printf(
          "  %-26s %10.2f %10.2f %10.2f %8.1f %6zu\n", name.c_str() + 2,
          median * 1e3, times.Quantile(0.1) * 1e3, times.Quantile(0.9) * 1e3,
          static_cast<double>(bytes) / median / 1e9, times.seconds.size());
    }
    const auto ratio = [&](const char* plain, const char* ours) {
      return 100 * (*series)[plain].Quantile(0.5) /
             (*series)[ours].Quantile(0.5);
    };
    std::printf("  rate of evict / plain copy   %.1f %%\n",
                ratio("1 plain copy to host", "2 evict: copy + destroy"));
    std::printf("  rate of restore / plain copy %.1f %%\n",
                ratio("3 plain copy to device", "4 restore: create + copy"));
    std::fflush(stdout);
  }

  Allocator* const allocator_;
  Copier* const copier_;
  PlainCopy* const plain_;
  std::vector<uint64_t> sizes_;
  std::vector<CreatedSlab> slabs_;
  Destroyer destroyer_;
};

bool ParseOptions(int argc, char** argv, Options* options) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    uint64_t mib = 0;
    bool understood = true;
    if (absl::ConsumePrefix(&arg, "--device=")) {
      options->device = std::string(arg);
    } else if (absl::ConsumePrefix(&arg, "--repetitions=")) {
      understood = absl::SimpleAtoi(arg, &options->repetitions) &&
                   options->repetitions > 0;
    } else if (absl::ConsumePrefix(&arg, "--total-mib=")) {
      understood = absl::SimpleAtoi(arg, &options->total_mib) &&
                   options->total_mib % 2 == 0;
    } else if (absl::ConsumePrefix(&arg, "--piece-mib=")) {
      understood = absl::SimpleAtoi(arg, &mib);
      options->pacing.piece_bytes = mib * kMiB;
    } else if (absl::ConsumePrefix(&arg, "--window-mib=")) {
      understood = absl::SimpleAtoi(arg, &mib);
      options->pacing.window_bytes = mib * kMiB;
    } else if (absl::ConsumePrefix(&arg, "--streams=")) {
      understood = absl::SimpleAtoi(arg, &options->pacing.streams);
    } else {
      understood = false;
    }
    if (understood) continue;
    std::fprintf(stderr,
                 "usage: copy_bench [--device=auto|host|vmm:NAME] "
                 "[--repetitions=30] [--total-mib=N]\n"
                 "                  [--piece-mib=32] [--window-mib=128] "
                 "[--streams=2]\n");
    return false;
  }
  return true;
}

absl::StatusOr<std::unique_ptr<Allocator>> OpenDevice(std::string name,
                                                      uint64_t bytes) {
  if (name == "auto") {
    const device::CudaProbe probe = device::ProbeCuda();
    name = probe.gpus.empty() ? "host" : "vmm:" + probe.gpus[0].uuid;
  }
  if (absl::StartsWith(name, "vmm:")) {
    return device::OpenVmmAllocator(name.substr(4));
  }
  if (name != "host") {
    return absl::InvalidArgumentError(
        absl::StrCat("no device of this name that can be evicted: ", name));
  }
  return device::OpenHostAllocator({.capacity_bytes = bytes});
}

absl::Status Run(const Options& options) {
  constexpr uint64_t kHostBytes = 1024 * kMiB;
  auto allocator = OpenDevice(options.device, 16 * kHostBytes);
  if (!allocator.ok()) return allocator.status();
  const device::DeviceInfo& info = (*allocator)->info();
  const bool is_host = info.kind == DeviceKind::kHost;
  const uint64_t bytes = options.total_mib != 0 ? options.total_mib * kMiB
                         : is_host              ? kHostBytes
                                                : 8 * kHostBytes;
  std::unique_ptr<device::PageLocker> locker;
  if (!is_host) {
    auto opened = device::OpenCudaPageLocker(info.uuid);
    if (!opened.ok()) return opened.status();
    locker = *std::move(opened);
  }
  const absl::Time start = absl::Now();
  auto pool = HostPool::Create({.bytes = bytes}, std::move(locker));
  if (!pool.ok()) return pool.status();
  const absl::Duration created = absl::Now() - start;
  absl::Status status = (*pool)->AwaitPrepared({0, bytes});
  if (!status.ok()) return status;
  const absl::Duration prepared = absl::Now() - start;
  auto copier = device::OpenCopier(info, pool->get(), options.pacing);
  if (!copier.ok()) return copier.status();
  auto plain = OpenPlainCopy(info, std::min(bytes, kHostBytes));
  if (!plain.ok()) return plain.status();
  const HostPool::Progress progress = (*pool)->progress();
  std::printf(
      "%s %s, pieces of %llu MiB, window %llu MiB, %u streams\n"
      "host pool of %llu MiB: %s; there after %.2f ms, prepared after %.0f ms, "
      "%llu MiB page-locked%s%s\n",
      info.name.c_str(), info.uuid.c_str(),
      static_cast<unsigned long long>(options.pacing.piece_bytes / kMiB),
      static_cast<unsigned long long>(options.pacing.window_bytes / kMiB),
      options.pacing.streams, static_cast<unsigned long long>(bytes / kMiB),
      device::PageKindName((*pool)->page_kind()),
      absl::ToDoubleMilliseconds(created), absl::ToDoubleMilliseconds(prepared),
      static_cast<unsigned long long>(progress.locked_bytes / kMiB),
      progress.problem.empty() ? "" : ": ", progress.problem.c_str());
  CopyBench bench(allocator->get(), copier->get(), plain->get());
  for (const uint64_t slab_bytes : {1024 * kMiB, 20 * kMiB, 2 * kMiB}) {
    status = bench.Run(bytes, slab_bytes, options.repetitions);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace gmb::bench

int main(int argc, char** argv) {
  gmb::bench::Options options;
  if (!gmb::bench::ParseOptions(argc, argv, &options)) return 2;
  const absl::Status status = gmb::bench::Run(options);
  if (!status.ok()) {
    std::fprintf(stderr, "copy_bench: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
