// The command line: a word that nobody knows, and the one that it resembles.
#include "client/cli/commands/did_you_mean.h"

#include <algorithm>
#include <cstddef>

namespace gmb::cli {
namespace {

// A long word is no slip of any command or option.
constexpr size_t kLongest = 40;

// Slips between the two (optimal string alignment).
size_t Slips(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> slips(a.size() + 1,
                                         std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) slips[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) slips[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t changed = a[i - 1] == b[j - 1] ? 0 : 1;
      size_t& least = slips[i][j];
      least = std::min({slips[i - 1][j] + 1, slips[i][j - 1] + 1,
                        slips[i - 1][j - 1] + changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        least = std::min(least, slips[i - 2][j - 2] + 1);
    }
  }
  return slips[a.size()][b.size()];
}

}  // namespace

std::string DidYouMean(const std::string& word,
                       const std::vector<std::string>& known) {
  if (word.size() > kLongest) return "";
  std::string nearest;
  size_t least = word.size() / 3 + 1;
  for (const std::string& one : known) {
    const size_t slips = Slips(word, one);
    if (slips > least || (slips == least && nearest.empty())) continue;
    nearest = slips == least ? "" : one;
    least = slips;
  }
  return nearest;
}

}  // namespace gmb::cli
