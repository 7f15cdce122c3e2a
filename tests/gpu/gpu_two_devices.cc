#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "device/devices.h"
#include "gmb/client.h"
#include "proto/amount_text.h"

// One lease on one device that another may access: each fills it, and the
// other one reads that.
namespace gmb {
namespace {

constexpr uint64_t kLookedAtBytes = uint64_t{4} << 20;

device::DeviceKind KindOf(const Device& device) {
  return device.kind == DeviceKind::kHost ? device::DeviceKind::kHost
                                          : device::DeviceKind::kVmm;
}

absl::Status CheckAll(const std::vector<uint8_t>& found, uint8_t expected,
                      const std::string& who) {
  const bool right = std::all_of(found.begin(), found.end(),
                                 [&](uint8_t b) { return b == expected; });
  return right ? absl::OkStatus()
               : absl::DataLossError(absl::StrCat(who, " reads wrong bytes"));
}

absl::Status Run(const std::string& socket_dir, const std::string& here,
                 const std::string& there, const std::string& size) {
  const absl::StatusOr<uint64_t> bytes = proto::ParseBytes(size);
  if (!bytes.ok()) return bytes.status();
  ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = Client::Connect(std::move(options));
  if (!client.ok()) return client.status();
  const auto& devices = (*client)->devices();
  const auto other = std::find_if(
      devices.begin(), devices.end(),
      [&there](const Device& device) { return device.uuid == there; });
  if (other == devices.end())
    return absl::NotFoundError("the broker has no such device: " + there);
  AcquireOptions request;
  request.device = here;
  request.access_from = {there};
  absl::StatusOr<Lease> lease = (*client)->Acquire(*bytes, request);
  if (!lease.ok()) return lease.status();
  auto mapper =
      device::OpenMapper({KindOf(*other), other->uuid, other->name,
                          other->total_bytes, other->granularity_bytes});
  if (!mapper.ok()) return mapper.status();

  std::vector<uint8_t> found(std::min(kLookedAtBytes, lease->size_bytes()));
  const uint64_t last = lease->size_bytes() - found.size();
  char* const data = static_cast<char*>(lease->data());
  absl::Status status = lease->Fill(0, 0x3C, lease->size_bytes());
  status.Update((*mapper)->CopyToHost(found.data(), data + last, found.size()));
  if (status.ok()) status = CheckAll(found, 0x3C, there);
  if (status.ok()) status = (*mapper)->Fill(data, 0xC3, lease->size_bytes());
  if (status.ok()) status = lease->CopyToHost(found.data(), last, found.size());
  if (status.ok()) status = CheckAll(found, 0xC3, here);
  if (!status.ok()) return status;
  std::printf("%s and %s filled and read the same %llu bytes\n", here.c_str(),
              there.c_str(),
              static_cast<unsigned long long>(lease->size_bytes()));
  return std::move(*lease).Release();
}

}  // namespace
}  // namespace gmb

int main(int argc, char** argv) {
  if (argc != 5) {
    std::fprintf(stderr,
                 "usage: gpu_two_devices SOCKET_DIR UUID OTHER_UUID BYTES\n");
    return 2;
  }
  const absl::Status status = gmb::Run(argv[1], argv[2], argv[3], argv[4]);
  if (!status.ok()) {
    std::fprintf(stderr, "gpu_two_devices: %s\n", status.ToString().c_str());
    return 1;
  }
  return 0;
}
