// `gmb top`: keys, as terminals of the family of xterm and vt220 send them.
#include "client/cli/top/keys.h"

#include <utility>

namespace gmb::cli::top {
namespace {

// A sequence that is longer is none that anybody sends.
constexpr size_t kLongest = 16;

// "\x1b[A", "\x1bOA", "\x1b[5~", and what else a terminal may call them. 0: one
// that is not known.
Key KeyOf(absl::string_view sequence) {
  constexpr std::pair<absl::string_view, Key> kKeys[] = {
      {"[A", kKeyUp},    {"OA", kKeyUp},      {"[B", kKeyDown},
      {"OB", kKeyDown},  {"[5~", kKeyPageUp}, {"[6~", kKeyPageDown},
      {"[H", kKeyHome},  {"OH", kKeyHome},    {"[1~", kKeyHome},
      {"[7~", kKeyHome}, {"[F", kKeyEnd},     {"OF", kKeyEnd},
      {"[4~", kKeyEnd},  {"[8~", kKeyEnd},    {"OP", kKeyF1},
      {"[11~", kKeyF1},  {"[[A", kKeyF1},     {"[21~", kKeyF10}};
  for (const auto& [text, key] : kKeys) {
    if (sequence.substr(1) == text) return key;
  }
  return 0;
}

// Whether `text`, which begins with an escape, is a whole sequence.
bool IsWhole(absl::string_view text) {
  if (text.size() < 3) return false;
  if (text[1] == 'O') return true;
  if (text == "\x1b[[") return false;
  const char last = text.back();
  return last >= '@' && last <= '~';
}

}  // namespace

std::vector<Key> KeyReader::Read(absl::string_view bytes) {
  std::vector<Key> keys;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (begun_.empty() && c != kKeyEscape) {
      if (static_cast<unsigned char>(c) < 128) keys.push_back(c);
      continue;
    }
    begun_.push_back(c);
    // Alone, or before what begins no sequence, it is the key Esc.
    const bool is_last = i + 1 == bytes.size();
    if (begun_.size() == 1 && !is_last) continue;
    if (begun_.size() == 1 || (begun_.size() == 2 && c != '[' && c != 'O')) {
      keys.push_back(kKeyEscape);
      if (begun_.size() == 2 && c > 0) keys.push_back(c);
      begun_.clear();
    } else if (IsWhole(begun_) || begun_.size() > kLongest) {
      if (const Key key = KeyOf(begun_); key != 0) keys.push_back(key);
      begun_.clear();
    }
  }
  return keys;
}

}  // namespace gmb::cli::top
