// The automatic gate, for the preload library of `gmb run`: plain functions over
// the one object that a process has.
#include <atomic>
#include <chrono>
#include <string>
#include <utility>

#include "client/c/c_error.h"
#include "client/c/c_handles.h"
#include "client/gate/bias_calls.h"
#include "client/gate/bias_slots.h"
#include "client/session/automatic_gate.h"
#include "gmb/c_api.h"

namespace gmb::internal {
namespace {

// Set once; never destroyed, since calls may be in it at any time.
std::atomic<AutomaticGate*> the_gate{nullptr};

AutomaticGate& TheGate() { return *the_gate.load(std::memory_order_acquire); }

class HookedDevices final : public IdlerDevices {
 public:
  explicit HookedDevices(const BiasHooks& hooks) : hooks_(hooks) {}
  bool Record() override { return hooks_.record(); }
  Work Poll() override { return static_cast<Work>(hooks_.poll()); }
  bool HeedsPauses() override { return hooks_.heeds_pauses(); }

 private:
  const BiasHooks hooks_;
};

BiasSlot* Slot() { return BiasSlots::Mine(); }

bool EnterSlowly(BiasSlot* slot, uint32_t was, bool* ordinary) {
  Bias::Entry entry{.was = was, .ordinary = false};
  const bool in = TheGate().EnterSlowly(*slot, entry);
  *ordinary = entry.ordinary;
  return in;
}

void LeaveOrdinary() { TheGate().bias().LeaveOrdinary(); }

bool IsAway() { return TheGate().bias().away(); }

void NeverPark(const char* why) {
  NoThrow([&] {
    TheGate().NeverPark(why);
    return absl::OkStatus();
  }).IgnoreError();
}

void JoinGroup(const char* group, uint32_t members) {
  NoThrow([&] {
    TheGate().JoinGroup(group, members);
    return absl::OkStatus();
  }).IgnoreError();
}

void Stop() { TheGate().Stop(); }

absl::StatusOr<const BiasCalls*> Begin(const Client& client,
                                       const BiasHooks& hooks) {
  if (hooks.version != kBiasCallsVersion) {
    return absl::FailedPreconditionError(
        "gmb: libgmb_preload.so and libgmb.so are of different builds; install "
        "them together");
  }
  if (the_gate.load(std::memory_order_acquire) != nullptr) {
    return absl::FailedPreconditionError(
        "gmb: this process lent its memory to another broker, which is gone; "
        "start it again to lend again");
  }
  AutomaticGateOptions options;
  options.idling.park_after = std::chrono::milliseconds(hooks.park_after_ms);
  options.parks_forced = hooks.parks_forced;
  options.group = hooks.group;
  options.say = [say = hooks.say](const std::string& text) {
    say(text.c_str());
  };
  auto* const devices = new HookedDevices(hooks);
  auto* const gate = new AutomaticGate(SessionOf(client).shared_from_this(),
                                       devices, std::move(options));
  the_gate.store(gate, std::memory_order_release);
  if (absl::Status status = gate->Begin(); !status.ok()) return status;
  static const BiasCalls kCalls = {.flags = &gate->bias().flags(),
                                   .slot = Slot,
                                   .enter_slowly = EnterSlowly,
                                   .leave_ordinary = LeaveOrdinary,
                                   .is_away = IsAway,
                                   .never_park = NeverPark,
                                   .join_group = JoinGroup,
                                   .stop = Stop};
  return &kCalls;
}

}  // namespace
}  // namespace gmb::internal

GMB_EXPORT gmb_error* gmb_internal_automatic_gate(
    gmb_client* client, const gmb::internal::BiasHooks* hooks,
    const gmb::internal::BiasCalls** calls) {
  *calls = nullptr;
  return gmb::internal::CEdge([&]() -> absl::Status {
    auto begun = gmb::internal::Begin(*client->client, *hooks);
    if (begun.ok()) *calls = *begun;
    return begun.status();
  });
}
