#ifndef GMB_TESTS_CLIENT_CLIENT_GATE_FIXTURE_H_
#define GMB_TESTS_CLIENT_CLIENT_GATE_FIXTURE_H_

#include <functional>
#include <memory>
#include <utility>

#include "ipc/gate_control.h"
#include "ipc/gate_page.h"
#include "tests/client/client_fixture.h"

namespace gmb::test {

// A client with a gate, and the broker's moves on it.
class ClientGateTest : public ClientTest {
 protected:
  static constexpr absl::Duration kWait = absl::Seconds(20);

  // Messages of one kind go to `handler`, everything else is served.
  void On(v1::ClientMessage::KindCase kind,
          std::function<void(const v1::ClientMessage&)> handler) {
    broker().OnMessage([this, kind, handler = std::move(handler)](
                           const v1::ClientMessage& message) {
      if (message.kind_case() == kind) {
        handler(message);
      } else {
        broker().Serve(message);
      }
    });
  }
  static GateOptions AtOnce() { return {.park_after = absl::ZeroDuration()}; }
  ipc::GateWord Word() { return ipc::LookAtGate(broker().gate()); }
  bool AwaitState(ipc::GateState state) {
    return broker().WaitUntil([&] { return Word().state() == state; });
  }
  // Once it is parked.
  bool Close() {
    return broker().WaitUntil(
        [&] { return ipc::CloseGate(broker().gate(), Word()); });
  }
  bool Reopen() { return ipc::ReopenGate(broker().gate(), Word()); }
  // Answers all that came.
  void ServeRestores() {
    for (const v1::ClientMessage& message : broker().messages()) {
      if (message.has_restore()) broker().Serve(message);
    }
  }
  bool AwaitMoved(uint64_t move, size_t times = 1) {
    return broker().WaitUntil(
        [&] { return broker().Moved(move).size() >= times; });
  }
};

}  // namespace gmb::test

#endif  // GMB_TESTS_CLIENT_CLIENT_GATE_FIXTURE_H_
