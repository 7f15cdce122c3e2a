// A quantity of a pool's memory: bytes, or a fraction of the pool.
#ifndef GMB_QUOTA_AMOUNT_H_
#define GMB_QUOTA_AMOUNT_H_

#include <cstdint>

namespace gmb::quota {

class Amount {
 public:
  constexpr Amount() = default;  // 0 bytes

  static constexpr Amount Bytes(uint64_t bytes) {
    Amount amount;
    amount.bytes_ = bytes;
    return amount;
  }
  // A share of the pool, 0 to 1; follows the pool when it is resized.
  static constexpr Amount Fraction(double fraction) {
    Amount amount;
    amount.is_fraction_ = true;
    amount.fraction_ = fraction;
    return amount;
  }

  bool is_fraction() const { return is_fraction_; }
  uint64_t bytes() const { return bytes_; }      // 0 for a fraction
  double fraction() const { return fraction_; }  // 0 for bytes

  // False for a fraction that is not finite or not within 0 to 1.
  bool IsValid() const;

  // The bytes meant in a pool of this size, rounded down to the granularity and
  // never more than kMaxPoolBytes. 0 when not valid. `granularity_bytes` > 0.
  uint64_t Resolve(uint64_t pool_bytes, uint64_t granularity_bytes) const;

  friend bool operator==(const Amount& a, const Amount& b) = default;

 private:
  uint64_t bytes_ = 0;
  double fraction_ = 0;
  bool is_fraction_ = false;
};

}  // namespace gmb::quota

#endif  // GMB_QUOTA_AMOUNT_H_
