#ifndef GMB_CLIENT_PRELOAD_SAY_H_
#define GMB_CLIENT_PRELOAD_SAY_H_

#include <cstdint>
#include <string>

namespace gmb::preload {

// One line on standard error, with GMB_RUN_VERBOSE; otherwise nothing.
void Say(const std::string& line);

// The same with or without it: for what a person has to know.
void SayAlways(const std::string& line);

// "20.0 MiB", for such lines.
[[nodiscard]] std::string MebibytesText(uint64_t bytes);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_SAY_H_
