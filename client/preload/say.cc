// `gmb run --verbose`: says why memory was refused.
#include "client/preload/say.h"

#include <unistd.h>

#include <array>
#include <cstdio>

#include "client/preload/settings.h"

namespace gmb::preload {

void Say(const std::string& line) {
  if (TheSettings().verbose) SayAlways(line);
}

void SayAlways(const std::string& line) {
  dprintf(STDERR_FILENO, "gmb run[%d]: %s\n", static_cast<int>(getpid()),
          line.c_str());
}

std::string MebibytesText(uint64_t bytes) {
  constexpr double kMiB = 1 << 20;
  std::array<char, 48> text{};
  const int length = std::snprintf(text.data(), text.size(), "%.1f MiB",
                                   static_cast<double>(bytes) / kMiB);
  return {text.data(), static_cast<size_t>(length)};
}

}  // namespace gmb::preload
