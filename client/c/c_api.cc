// The C interface: sessions, leases and the gate, over the C++ library.
#include "gmb/c_api.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/c/c_options.h"
#include "client/gate/gate.h"
#include "gmb/client.h"

using gmb::internal::CEdge;
using gmb::internal::CopyOut;
using gmb::internal::FromC;
using gmb::internal::GateOf;
using gmb::internal::ToC;
using gmb::internal::WaitFromC;

void gmb_abi_version(uint32_t* major, uint32_t* minor) {
  *major = GMB_ABI_MAJOR;
  *minor = GMB_ABI_MINOR;
}

const char* gmb_version(void) { return GMB_VERSION_STRING; }

void gmb_client_options_init(gmb_client_options* options, size_t struct_size) {
  std::memset(options, 0, struct_size);
  options->struct_size = struct_size;
}

gmb_error* gmb_client_connect(const gmb_client_options* options,
                              gmb_client** client) {
  *client = nullptr;
  return CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(gmb::ClientOptions read, FromC(options));
    GMB_ASSIGN_OR_RETURN(std::unique_ptr<gmb::Client> connected,
                         gmb::Client::Connect(std::move(read)));
    *client = new gmb_client{std::move(connected)};
    return absl::OkStatus();
  });
}

void gmb_client_close(gmb_client* client) { delete client; }

gmb_error* gmb_client_status(const gmb_client* client) {
  return CEdge([&] { return client->client->status(); });
}

const char* gmb_client_tenant(const gmb_client* client) {
  return client->client->tenant().c_str();
}

uint64_t gmb_client_session_id(const gmb_client* client) {
  return client->client->session_id();
}

const char* gmb_client_warning(const gmb_client* client, size_t index) {
  const std::vector<std::string>& warnings = client->client->warnings();
  return index < warnings.size() ? warnings[index].c_str() : nullptr;
}

gmb_error* gmb_client_devices(const gmb_client* client, gmb_device* devices,
                              size_t element_size, size_t capacity,
                              size_t* count) {
  *count = 0;
  return CEdge([&] {
    std::vector<gmb_device> all;
    for (const gmb::Device& device : client->client->devices())
      all.push_back(ToC(device));
    return CopyOut(all, devices, element_size, capacity, count);
  });
}

gmb_error* gmb_client_quota(gmb_client* client, gmb_quota* quotas,
                            size_t element_size, size_t capacity,
                            size_t* count) {
  *count = 0;
  return CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const std::vector<gmb::QuotaView> views,
                         client->client->GetQuota());
    std::vector<gmb_quota> all;
    all.reserve(views.size());
    for (const gmb::QuotaView& view : views) all.push_back(ToC(view));
    return CopyOut(all, quotas, element_size, capacity, count);
  });
}

gmb_error* gmb_gate_on(gmb_client* client, int64_t park_after_ms,
                       const char* group) {
  return CEdge([&]() -> absl::Status {
    if (park_after_ms < 0) {
      return absl::InvalidArgumentError("gmb: park_after_ms is below 0");
    }
    gmb::GateOptions options;
    if (park_after_ms > 0) {
      options.park_after = absl::Milliseconds(park_after_ms);
    }
    if (group != nullptr) options.group = group;
    return client->client->TurnGateOn(options);
  });
}

gmb_error* gmb_gate_off(gmb_client* client, int64_t wait_ms) {
  return CEdge([&] { return client->client->TurnGateOff(WaitFromC(wait_ms)); });
}

gmb_error* gmb_enter(gmb_client* client, int64_t wait_ms) {
  return CEdge(
      [&] { return GateOf(*client->client).Enter(WaitFromC(wait_ms)); });
}

gmb_error* gmb_enter_capture(gmb_client* client, int64_t wait_ms) {
  return CEdge(
      [&] { return GateOf(*client->client).EnterCapture(WaitFromC(wait_ms)); });
}

gmb_error* gmb_leave(gmb_client* client) {
  if (GateOf(*client->client).Leave()) return nullptr;
  return CEdge([] {
    return absl::FailedPreconditionError(
        "gmb: this thread is in no scope of this session: leave on the thread "
        "that entered, and once");
  });
}

gmb_error* gmb_set_trimmable(gmb_client* client, const char* device,
                             uint64_t bytes) {
  return CEdge([&] {
    return client->client->SetTrimmable(device == nullptr ? "" : device, bytes);
  });
}

gmb_error* gmb_canceller_create(gmb_canceller** canceller) {
  *canceller = nullptr;
  return CEdge([&] {
    *canceller = new gmb_canceller;
    return absl::OkStatus();
  });
}

void gmb_canceller_cancel(gmb_canceller* canceller) {
  canceller->source.request_stop();
}

void gmb_canceller_free(gmb_canceller* canceller) { delete canceller; }

void gmb_acquire_options_init(gmb_acquire_options* options,
                              size_t struct_size) {
  std::memset(options, 0, struct_size);
  options->struct_size = struct_size;
}

gmb_error* gmb_acquire(gmb_client* client, uint64_t bytes,
                       const gmb_acquire_options* options, gmb_lease** lease) {
  *lease = nullptr;
  return CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::AcquireOptions read, FromC(options));
    auto made = std::make_unique<gmb_lease>();
    GMB_ASSIGN_OR_RETURN(made->lease, client->client->Acquire(bytes, read));
    *lease = made.release();
    return absl::OkStatus();
  });
}

void gmb_attach_options_init(gmb_attach_options* options, size_t struct_size) {
  std::memset(options, 0, struct_size);
  options->struct_size = struct_size;
}

gmb_error* gmb_attach(gmb_client* client, const char* name,
                      const gmb_attach_options* options, gmb_lease** lease) {
  *lease = nullptr;
  return CEdge([&]() -> absl::Status {
    GMB_ASSIGN_OR_RETURN(const gmb::AttachOptions read, FromC(options));
    auto made = std::make_unique<gmb_lease>();
    GMB_ASSIGN_OR_RETURN(
        made->lease, client->client->Attach(name == nullptr ? "" : name, read));
    *lease = made.release();
    return absl::OkStatus();
  });
}

gmb_error* gmb_drop(gmb_client* client, const char* name) {
  return CEdge(
      [&] { return client->client->Drop(name == nullptr ? "" : name); });
}

void* gmb_lease_data(const gmb_lease* lease) { return lease->lease.data(); }

uint64_t gmb_lease_size_bytes(const gmb_lease* lease) {
  return lease->lease.size_bytes();
}

uint64_t gmb_lease_id(const gmb_lease* lease) { return lease->lease.id(); }

const char* gmb_lease_device(const gmb_lease* lease) {
  return lease->lease.device().c_str();
}

int32_t gmb_lease_attached(const gmb_lease* lease) {
  return lease->lease.attached() ? 1 : 0;
}

gmb_error* gmb_lease_release(gmb_lease* lease) {
  if (lease == nullptr) return nullptr;
  const std::unique_ptr<gmb_lease> owned(lease);
  return CEdge([&] { return std::move(owned->lease).Release(); });
}

void gmb_lease_release_soon(gmb_lease* lease) { delete lease; }

gmb_error* gmb_lease_seal(gmb_lease* lease) {
  return CEdge([&] { return lease->lease.Seal(); });
}

gmb_error* gmb_lease_copy_to_host(const gmb_lease* lease, void* to,
                                  uint64_t offset_bytes, uint64_t bytes) {
  return CEdge(
      [&] { return lease->lease.CopyToHost(to, offset_bytes, bytes); });
}

gmb_error* gmb_lease_copy_from_host(gmb_lease* lease, uint64_t offset_bytes,
                                    const void* from, uint64_t bytes) {
  return CEdge(
      [&] { return lease->lease.CopyFromHost(offset_bytes, from, bytes); });
}

gmb_error* gmb_lease_fill(gmb_lease* lease, uint64_t offset_bytes,
                          uint8_t value, uint64_t bytes) {
  return CEdge([&] { return lease->lease.Fill(offset_bytes, value, bytes); });
}
