#ifndef GMB_CLIENT_GATE_BIAS_CALLS_H_
#define GMB_CLIENT_GATE_BIAS_CALLS_H_

#include <atomic>
#include <cstdint>

#include "client/gate/bias_slot.h"

namespace gmb::internal {

// The automatic gate between the two libraries of `gmb run`: libgmb.so has the
// gate, libgmb_preload.so marks the calls. Plain pointers, because the second
// has no Abseil; both are of one build, and kBiasCallsVersion says so.
inline constexpr uint32_t kBiasCallsVersion = 5;

// From libgmb.so. Thread-safe; valid for the life of the process.
struct BiasCalls {
  const std::atomic<uint32_t>* flags;
  // The calling thread's; null when there is no memory for it.
  BiasSlot* (*slot)();
  // After a MarkAndLook that did not let the call in. Waits while the memory is
  // away and the broker lives. False: the call must not be made, for the memory
  // will not come back; the slot has the mark that was found.
  bool (*enter_slowly)(BiasSlot* slot, uint32_t was, bool* ordinary);
  // Owed after enter_slowly has set *ordinary.
  void (*leave_ordinary)();
  // Whether the broker has the memory, so that a call would have to wait for it.
  bool (*is_away)();
  // Why the process must not be parked from now on. The text is kept.
  void (*never_park)(const char* why);
  // Processes of that group are parked together or not at all from now on, and
  // not before so many are in it at once. Waits for the broker, and for memory
  // that is away; where it fails the process is never parked again.
  void (*join_group)(const char* group, uint32_t members);
  // The process exits: nothing is parked or waited for any more, and no hook is
  // called once this has returned.
  void (*stop)();
};

// To libgmb.so. `say` is called on any thread; the others on the gate's own and
// on that of the session's moves, never by both at once.
struct BiasHooks {
  uint32_t version;
  uint32_t park_after_ms;
  // Whether it parks whatever is seen: --park=force.
  bool parks_forced;
  // Processes of the tenant that are parked together or not at all; empty: none.
  const char* group;
  // As IdlerDevices.
  bool (*record)();
  int (*poll)();
  bool (*heeds_pauses)();
  // For the person who runs the program; one line without a line feed.
  void (*say)(const char* text);
};

}  // namespace gmb::internal

struct gmb_client;
struct gmb_client_options;
struct gmb_error;

// From libgmb.so; not of the public interface. Begins the process's automatic
// gate in a session that was opened for one, before its first lease. Fails, with
// *calls null, when the libraries are of different builds, or when the process
// had an automatic gate before.
extern "C" gmb_error* gmb_internal_automatic_gate(
    gmb_client* client, const gmb::internal::BiasHooks* hooks,
    const gmb::internal::BiasCalls** calls);

// Likewise. Another client of its session, for a part of the program that has
// scopes: both have one gate and one idler. *joined is null, without an error,
// when the options mean another broker or tenant. It is closed as any client.
extern "C" gmb_error* gmb_internal_join(const gmb_client* client,
                                        const gmb_client_options* options,
                                        gmb_client** joined);

#endif  // GMB_CLIENT_GATE_BIAS_CALLS_H_
