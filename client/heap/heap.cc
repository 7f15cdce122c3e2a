// The heap, as a program sees it.
#include "gmb/heap.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "client/heap/heap_core.h"
#include "client/heap/lease_source.h"
#include "client/heap/trim_watch.h"
#include "client/no_throw.h"
#include "client/session/session.h"
#include "client/session/trim_hook.h"
#include "client/wire.h"
#include "device/devices.h"

namespace gmb {
namespace {

using internal::NoThrow;

// CUDA's names of its default streams, in place of a pointer.
constexpr uintptr_t kLegacyStream = 1;
constexpr uintptr_t kPerThreadStream = 2;

// A program that begins, or is busy as never before.
constexpr auto kGrowthRun = std::chrono::milliseconds(250);

absl::StatusOr<device::DeviceInfo> FindDevice(const v1::Welcome& welcome,
                                              const std::string& uuid) {
  if (uuid.empty() && welcome.devices_size() != 1) {
    return absl::InvalidArgumentError(
        "gmb: the broker has several devices: name one");
  }
  for (const v1::DeviceInfo& device : welcome.devices()) {
    if (uuid.empty() || device.uuid() == uuid)
      return internal::MappableDevice(device);
  }
  return absl::NotFoundError(absl::StrCat(
      "gmb: the broker did not offer this device when the session began: "
      "device=",
      uuid));
}

absl::Status CheckGrowth(const HeapOptions& options) {
  const uint64_t least = options.least_growth_bytes;
  const uint64_t most = options.most_growth_bytes;
  if (least == 0) {
    return absl::InvalidArgumentError(
        "gmb: least_growth_bytes is 0: a lease has at least 1 byte");
  }
  if (least > most) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gmb: least_growth_bytes is more than most_growth_bytes: ", least, " ",
        most));
  }
  if (most > internal::Arena::kMostBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "gmb: most_growth_bytes is more than a lease may have (64 TiB): ",
        most));
  }
  return absl::OkStatus();
}

}  // namespace

struct Heap::Impl {
  absl::StatusOr<void*> StreamOf(void* stream) const;

  internal::Session* session = nullptr;
  device::DeviceInfo info;
  std::unique_ptr<internal::TrimWatch> watch;
  std::unique_ptr<internal::HeapCore> core;
};

absl::StatusOr<void*> Heap::Impl::StreamOf(void* stream) const {
  if (info.kind == device::DeviceKind::kHost) return stream;
  const auto name = reinterpret_cast<uintptr_t>(stream);
  if (name == kLegacyStream) return static_cast<void*>(nullptr);
  if (name == kPerThreadStream) {
    return absl::InvalidArgumentError(
        "gmb: cudaStreamPerThread is another stream in each thread: make one "
        "with cudaStreamCreate and name that");
  }
  return stream;
}

Heap::Heap(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

Heap::~Heap() {
  if (impl_->core->fork_guard().InChild()) {
    static_cast<void>(impl_.release());  // the parent's: leaked on purpose
    return;
  }
  if (impl_->watch == nullptr) return;
  impl_->session->trims().hook().RemoveHeap(impl_.get());
  impl_->watch.reset();
  NoThrow([this] {
    return impl_->session->trims().SetTrimmable(impl_->info.uuid, 0,
                                                impl_.get());
  }).IgnoreError();
}

absl::StatusOr<std::unique_ptr<Heap>> Heap::Create(Client* client,
                                                   HeapOptions options) {
  return NoThrow([&]() -> absl::StatusOr<std::unique_ptr<Heap>> {
    GMB_RETURN_IF_ERROR(CheckGrowth(options));
    GMB_RETURN_IF_ERROR(client->status());
    auto impl = std::make_unique<Impl>();
    impl->session = &internal::SessionOf(*client);
    GMB_ASSIGN_OR_RETURN(impl->info,
                         FindDevice(impl->session->welcome(), options.device));
    GMB_ASSIGN_OR_RETURN(std::unique_ptr<device::StreamFences> fences,
                         device::OpenStreamFences(impl->info));

    Impl* const self = impl.get();
    internal::HeapCore::Options core_options{
        .least_growth_bytes = options.least_growth_bytes,
        .most_growth_bytes = options.most_growth_bytes,
        .wait = options.wait};
    if (options.trim) {
      impl->watch = std::make_unique<internal::TrimWatch>(
          [self](uint64_t bytes) {
            NoThrow([&] {
              return self->session->trims().SetTrimmable(self->info.uuid, bytes,
                                                         self);
            }).IgnoreError();
          },
          [self] {
            NoThrow([&] {
              self->core->ReturnAhead();
              return absl::OkStatus();
            }).IgnoreError();
          });
      core_options.growth_run = kGrowthRun;
      // The watch's own thread may say so while ~Heap waits for it to end.
      core_options.on_empty = [watch = impl->watch.get()](uint64_t bytes) {
        watch->Changed(bytes);
      };
    }
    AcquireOptions like;
    like.device = impl->info.uuid;
    like.contents = options.contents;
    like.access_from = std::move(options.access_from);
    impl->core = std::make_unique<internal::HeapCore>(
        std::make_unique<internal::LeaseSource>(client, std::move(like)),
        std::move(fences), std::move(core_options));
    std::unique_ptr<Heap> heap(new Heap(std::move(impl)));
    if (options.trim) {
      self->session->trims().hook().AddHeap(
          self, [self](const std::string& device, uint64_t bytes) {
            if (device != self->info.uuid) return uint64_t{0};
            const uint64_t given = self->core->Trim(bytes);
            self->watch->Repeat();  // the broker has forgotten it
            return given;
          });
    }
    return heap;
  });
}

absl::StatusOr<void*> Heap::Allocate(uint64_t bytes, void* stream) {
  return NoThrow([&]() -> absl::StatusOr<void*> {
    absl::StatusOr<void*> on = impl_->StreamOf(stream);
    if (!on.ok()) return on;
    return impl_->core->Allocate(bytes, *on);
  });
}

absl::Status Heap::Free(void* address) {
  return NoThrow([&] { return impl_->core->Free(address, std::nullopt); });
}

absl::Status Heap::Free(void* address, void* stream) {
  return NoThrow([&]() -> absl::Status {
    const absl::StatusOr<void*> on = impl_->StreamOf(stream);
    return on.ok() ? impl_->core->Free(address, *on) : on.status();
  });
}

absl::Status Heap::FreeDone(void* address) {
  return NoThrow([&] { return impl_->core->FreeDone(address); });
}

absl::Status Heap::RecordStream(void* address, void* stream) {
  return NoThrow([&]() -> absl::Status {
    const absl::StatusOr<void*> on = impl_->StreamOf(stream);
    return on.ok() ? impl_->core->RecordStream(address, *on) : on.status();
  });
}

absl::Status Heap::DetachStream(void* stream) {
  return NoThrow([&]() -> absl::Status {
    const absl::StatusOr<void*> on = impl_->StreamOf(stream);
    return on.ok() ? impl_->core->DetachStream(*on) : on.status();
  });
}

absl::Status Heap::Prepare(uint64_t bytes) {
  return NoThrow([&] { return impl_->core->Prepare(bytes); });
}

uint64_t Heap::Trim(uint64_t bytes) {
  uint64_t given = 0;
  NoThrow([&] {
    given = impl_->core->Trim(bytes);
    return absl::OkStatus();
  }).IgnoreError();
  return given;
}

HeapStatistics Heap::statistics() const { return impl_->core->statistics(); }
const std::string& Heap::device() const { return impl_->info.uuid; }

absl::StatusOr<std::unique_ptr<GraphPool>> Heap::PrepareGraphs(uint64_t bytes) {
  return NoThrow([&]() -> absl::StatusOr<std::unique_ptr<GraphPool>> {
    GMB_ASSIGN_OR_RETURN(internal::PoolId pool, impl_->core->OpenPool(bytes));
    return std::unique_ptr<GraphPool>(new GraphPool(this, pool));
  });
}

GraphPool::~GraphPool() {
  internal::HeapCore& core = *heap_->impl_->core;
  if (core.fork_guard().InChild()) return;
  NoThrow([&] {
    core.ClosePool(id_);
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status GraphPool::Begin(void* stream) {
  return NoThrow([&]() -> absl::Status {
    const absl::StatusOr<void*> on = heap_->impl_->StreamOf(stream);
    return on.ok() ? heap_->impl_->core->BeginCapture(id_, *on) : on.status();
  });
}

absl::Status GraphPool::End(void* stream) {
  return NoThrow([&]() -> absl::Status {
    const absl::StatusOr<void*> on = heap_->impl_->StreamOf(stream);
    return on.ok() ? heap_->impl_->core->EndCapture(id_, *on) : on.status();
  });
}

}  // namespace gmb
