#ifndef GMB_BROKER_MACHINE_OWNED_H_
#define GMB_BROKER_MACHINE_OWNED_H_

#include <memory>
#include <utility>

// Each part of the machine's state has one owner, and the compiler holds
// everybody else to reading it.
namespace gmb::broker {

// Made by its owner alone; shown to whatever only the owner may change.
template <typename Owner>
class Key {
 private:
  friend Owner;
  Key() {}  // NOLINT: "= default" would let everybody make one
};

// A value that everybody reads and its owner changes. Copied with the machine.
template <typename T, typename Owner>
class Owned {
 public:
  Owned() = default;
  template <typename... Args>
  explicit Owned(std::in_place_t /*made of*/, Args&&... args)
      : value_(std::forward<Args>(args)...) {}
  Owned(const Owned&) = default;
  Owned& operator=(const Owned&) = delete;

  [[nodiscard]] const T& operator*() const { return value_; }
  [[nodiscard]] const T* operator->() const { return &value_; }
  [[nodiscard]] T& Edit(Key<Owner> /*of the owner*/) { return value_; }

 private:
  T value_{};
};

// A value that stays where it is while its table moves; its copy is a copy of
// the value.
template <typename T>
class Placed {
 public:
  explicit Placed(std::unique_ptr<T> value) : value_(std::move(value)) {}
  Placed(const Placed& other)
      : value_(other.value_ == nullptr ? nullptr
                                       : std::make_unique<T>(*other.value_)) {}
  Placed(Placed&&) noexcept = default;
  Placed& operator=(const Placed&) = delete;
  Placed& operator=(Placed&&) noexcept = default;

  [[nodiscard]] T* get() const { return value_.get(); }
  [[nodiscard]] T& operator*() const { return *value_; }
  [[nodiscard]] T* operator->() const { return value_.get(); }
  friend bool operator==(const Placed& a, std::nullptr_t /*none*/) {
    return a.value_ == nullptr;
  }

 private:
  std::unique_ptr<T> value_;
};

}  // namespace gmb::broker

#endif  // GMB_BROKER_MACHINE_OWNED_H_
