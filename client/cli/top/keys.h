#ifndef GMB_CLIENT_CLI_TOP_KEYS_H_
#define GMB_CLIENT_CLI_TOP_KEYS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace gmb::cli::top {

// A key of a terminal: a character of ASCII as it is, or one of these.
using Key = int;
inline constexpr Key kKeyUp = 256;
inline constexpr Key kKeyDown = 257;
inline constexpr Key kKeyPageUp = 258;
inline constexpr Key kKeyPageDown = 259;
inline constexpr Key kKeyHome = 260;
inline constexpr Key kKeyEnd = 261;
inline constexpr Key kKeyF1 = 262;
inline constexpr Key kKeyF10 = 263;
inline constexpr Key kKeyEscape = 27;
inline constexpr Key kKeyBackspace = 127;

// Keys out of the bytes that a terminal sends, which come in any pieces. Keys
// that it does not know are left out.
class KeyReader {
 public:
  [[nodiscard]] std::vector<Key> Read(absl::string_view bytes);

 private:
  std::string begun_;  // of a sequence whose end has not come
};

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_KEYS_H_
