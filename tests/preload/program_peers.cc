#include "tests/preload/program_peers.h"

#include <cstdio>
#include <cstdlib>

bool PeerSteps::Do(const std::vector<std::string>& words) {
  const auto number = [&](size_t at) {
    return std::strtoull(words[at].c_str(), nullptr, 10);
  };
  const std::string& what = words[0];
  const std::string& name = words[1];
  if (what == "store") {
    std::printf(
        "store %s %d\n", name.c_str(),
        api_.cuMemsetD8_(memory_[name], static_cast<unsigned char>(number(3)),
                         number(2)));
  } else if (what == "copy") {
    std::printf("copy %s %d\n", name.c_str(),
                api_.cuMemcpyDtoDAsync_(memory_[name], memory_[words[2]],
                                        number(3), streams_.at(number(4))));
  } else if (what == "active") {
    unsigned flags = 0;
    int active = 0;
    api_.cuDevicePrimaryCtxGetState_(static_cast<CUdevice>(number(1)), &flags,
                                     &active);
    std::printf("active %s %d\n", name.c_str(), active);
  } else {
    return false;
  }
  return true;
}
