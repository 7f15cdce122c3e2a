// Sessions that acquire and release without a pause.
#include "bench/broker/lease_pairs.h"

#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "bench/broker/rate.h"
#include "gmb/client.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kBytes = uint64_t{2} << 20;
constexpr absl::Duration kPatience = absl::Seconds(60);

}  // namespace

absl::StatusOr<double> LeasePairsASecond(const std::string& socket_dir,
                                         uint32_t sessions, double seconds,
                                         Ending ending) {
  std::vector<std::unique_ptr<Client>> clients;
  for (uint32_t i = 0; i < sessions; ++i) {
    ClientOptions options;
    options.socket_dir = socket_dir;
    options.connect_timeout = kPatience;
    auto client = Client::Connect(std::move(options));
    if (!client.ok()) return client.status();
    clients.push_back(*std::move(client));
  }
  std::atomic<uint64_t> pairs = 0;
  std::atomic<bool> stop = false;
  std::vector<absl::Status> ends(clients.size());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < clients.size(); ++i) {
    threads.emplace_back([&, i] {
      while (!stop && ends[i].ok()) {
        AcquireOptions options;
        options.wait = kPatience;
        auto lease = clients[i]->Acquire(kBytes, options);
        ends[i] = lease.status();
        if (lease.ok() && ending == Ending::kRelease)
          ends[i] = std::move(*lease).Release();
        ++pairs;
      }
    });
  }
  const double rate = RateOf(pairs, seconds);
  stop = true;
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& end : ends) {
    if (!end.ok()) return end;
  }
  return rate;
}

}  // namespace gmb::bench
