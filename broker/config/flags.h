#ifndef GMB_BROKER_CONFIG_FLAGS_H_
#define GMB_BROKER_CONFIG_FLAGS_H_

#include <map>
#include <string>
#include <vector>

namespace gmb::broker {

// gmbd's command line, its values not yet understood.
struct Flags {
  std::string config_file;                      // empty: none
  std::vector<std::string> devices;             // as given
  std::map<std::string, std::string> settings;  // by Setting::name
  bool check = false;           // say what would be served, and stop
  bool check_handover = false;  // the same, in place of the broker that runs

  // When not -1: print `text` and exit with it (--help, --version, mistakes).
  int exit_code = -1;
  std::string text;
};

[[nodiscard]] Flags ParseFlags(int argc, const char* const* argv);

}  // namespace gmb::broker

#endif  // GMB_BROKER_CONFIG_FLAGS_H_
