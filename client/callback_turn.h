#ifndef GMB_CLIENT_CALLBACK_TURN_H_
#define GMB_CLIENT_CALLBACK_TURN_H_

#include <chrono>

namespace gmb::internal {

// One call of a function that the program gave us. An interpreter that ends wants
// none any more, of any session, and waits for those that are under way.
// Thread-safe.
class CallbackTurn {
 public:
  CallbackTurn();
  ~CallbackTurn();
  CallbackTurn(const CallbackTurn&) = delete;
  CallbackTurn& operator=(const CallbackTurn&) = delete;

  // False: it must not be called.
  [[nodiscard]] bool granted() const { return granted_; }

  // From now on none is. Waits so long for the others; false: not all are over.
  static bool Silence(std::chrono::milliseconds wait);

 private:
  bool granted_;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_CALLBACK_TURN_H_
