#include "bench/reclaim/neighbour.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "bench/reclaim/child.h"
#include "bench/reclaim/neighbour_kernel.h"
#include "gmb/client.h"

namespace gmb::bench {

namespace {

constexpr double kLaunchSeconds = 0.002;

class NeighbourProcess {
 public:
  absl::Status Open(const std::string& kernel, const std::string& socket_dir,
                    const std::string& uuid, uint64_t bytes);
  // Until there are no more orders.
  absl::Status Work(Orders* orders);

 private:
  absl::Status Launch();
  absl::StatusOr<std::string> Mean() const;

  std::unique_ptr<Client> client_;
  Lease lease_;
  std::unique_ptr<NeighbourKernel> kernel_;
  absl::Duration total_;
  int64_t launches_ = 0;
};

absl::Status NeighbourProcess::Open(const std::string& kernel,
                                    const std::string& socket_dir,
                                    const std::string& uuid, uint64_t bytes) {
  ClientOptions options;
  options.socket_dir = socket_dir;
  absl::StatusOr<std::unique_ptr<Client>> client =
      Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  client_ = *std::move(client);
  AcquireOptions request;
  request.device = uuid;
  request.contents = Contents::kResident;
  request.wait = absl::Minutes(1);
  absl::StatusOr<Lease> lease = client_->Acquire(bytes, request);
  if (!lease.ok()) return lease.status();
  lease_ = *std::move(lease);
  absl::StatusOr<NeighbourKernel> loaded =
      NeighbourKernel::Load(kernel, uuid, lease_.data(), lease_.size_bytes());
  if (!loaded.ok()) return loaded.status();
  kernel_ = std::make_unique<NeighbourKernel>(*std::move(loaded));
  return kernel_->Calibrate(kLaunchSeconds);
}

absl::Status NeighbourProcess::Launch() {
  const absl::Time start = absl::Now();
  if (absl::Status run = kernel_->Run(); !run.ok()) return run;
  total_ += absl::Now() - start;
  ++launches_;
  return absl::OkStatus();
}

absl::StatusOr<std::string> NeighbourProcess::Mean() const {
  if (launches_ == 0) return absl::InternalError("there was no launch");
  return absl::StrCat(absl::ToDoubleSeconds(total_) /
                      static_cast<double>(launches_));
}

absl::Status NeighbourProcess::Work(Orders* orders) {
  for (;;) {
    if (absl::Status launched = Launch(); !launched.ok()) return launched;
    const absl::StatusOr<std::string> word = orders->Poll();
    if (absl::IsDeadlineExceeded(word.status())) continue;
    if (!word.ok()) return absl::OkStatus();
    absl::Status told = *word == "end" ? orders->Answer(Mean())
                                       : orders->Answer(std::string("begun"));
    if (!told.ok()) return told;
    total_ = absl::ZeroDuration();
    launches_ = 0;
  }
}

}  // namespace

int RunNeighbour(const std::string& kernel, const std::string& socket_dir,
                 const std::string& uuid, uint64_t bytes) {
  Orders orders;
  NeighbourProcess neighbour;
  absl::Status status = neighbour.Open(kernel, socket_dir, uuid, bytes);
  if (status.ok()) status = orders.Answer(std::string("ready"));
  if (status.ok()) status = neighbour.Work(&orders);
  if (status.ok()) return 0;
  (void)orders.Answer(status);  // whoever does not read it is gone
  return 1;
}

}  // namespace gmb::bench
