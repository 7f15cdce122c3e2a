#ifndef GMB_CLIENT_HEAP_EMPTY_NEWS_H_
#define GMB_CLIENT_HEAP_EMPTY_NEWS_H_

#include <cstdint>
#include <functional>
#include <utility>

namespace gmb::internal {

// Tells somebody of the bytes of a heap's empty chunks whenever they change. Not
// thread-safe.
class EmptyNews {
 public:
  using Listener = std::function<void(uint64_t empty_bytes)>;

  // Null: nobody wants to know.
  explicit EmptyNews(Listener listener) : listener_(std::move(listener)) {}

  // After every allocation and free, most of which change nothing.
  void Tell(uint64_t empty_bytes) {
    if (empty_bytes != told_) TellChanged(empty_bytes);
  }
  // Although they have not changed: something else has.
  void TellAgain() const {
    if (listener_ != nullptr) listener_(told_);
  }

 private:
  void TellChanged(uint64_t empty_bytes);

  const Listener listener_;
  uint64_t told_ = 0;
};

}  // namespace gmb::internal

#endif  // GMB_CLIENT_HEAP_EMPTY_NEWS_H_
