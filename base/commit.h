#ifndef GMB_BASE_COMMIT_H_
#define GMB_BASE_COMMIT_H_

namespace gmb::base {

// The commit that this was built from, "1a2b3c4d5e6f"; empty where the build
// could not tell.
[[nodiscard]] const char* Commit();

}  // namespace gmb::base

#endif  // GMB_BASE_COMMIT_H_
