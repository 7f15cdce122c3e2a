#ifndef GMB_CLIENT_CLI_INSTALLED_H_
#define GMB_CLIENT_CLI_INSTALLED_H_

#include <initializer_list>
#include <string>

namespace gmb::cli {

// The path of this program, links resolved; "gmb" where it is not known.
[[nodiscard]] std::string ThisProgram();

// A file that was built or installed together with this program: the first of
// `folders`, each relative to the program's own, that has one called `name`.
// Empty: none has.
[[nodiscard]] std::string FindInstalled(
    const char* name, std::initializer_list<const char*> folders);

// Where the libraries and gmb-demo are installed, from the folder of gmb, and
// where gmbd is, from that of gmb-demo. (installed_places.cc.in)
const char* LibFromBin();
const char* LibexecFromBin();
const char* BinFromLibexec();

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_INSTALLED_H_
