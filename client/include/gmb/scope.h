#ifndef GMB_SCOPE_H_
#define GMB_SCOPE_H_

#include <utility>

namespace gmb {

namespace internal {
class Gate;
}  // namespace internal

// A scope of a session's gate: while it lives, the memory of the session's
// leases stays mapped and where it is. Made by Client::Enter. Move-only.
//
// Belongs to the thread that made it, and must be destroyed there, before the
// Client is. Scopes of a thread nest; they may end in any order. In a child of
// fork() ending one does nothing.
class [[nodiscard]] Scope {
 public:
  // In nothing.
  Scope() = default;
  Scope(Scope&& other) noexcept : gate_(std::exchange(other.gate_, nullptr)) {}
  // Leaves what this scope was in before.
  Scope& operator=(Scope&& other) noexcept {
    if (this != &other) {
      Leave();
      gate_ = std::exchange(other.gate_, nullptr);
    }
    return *this;
  }
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;
  ~Scope() { Leave(); }

  // Ends it before its destructor does; afterwards it is in nothing.
  void Leave() noexcept {
    if (gate_ != nullptr) LeaveGate(std::exchange(gate_, nullptr));
  }

 private:
  friend class Client;
  explicit Scope(internal::Gate* gate) : gate_(gate) {}
  static void LeaveGate(internal::Gate* gate) noexcept;

  internal::Gate* gate_ = nullptr;
};

}  // namespace gmb

#endif  // GMB_SCOPE_H_
