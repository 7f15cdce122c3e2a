// The last words of a broker whose books contradict themselves.
#include "quota/must_find.h"

#include <cstdio>
#include <cstdlib>

namespace gmb::quota {

void EndForBrokenBooks(const char* what, uint64_t id, const char* file,
                       int line) {
  std::fprintf(stderr,
               "gmbd: the books name a %s that is not there: id=%llu (%s:%d); "
               "this is a defect of gmbd: please report it\n",
               what, static_cast<unsigned long long>(id), file, line);
  std::abort();
}

}  // namespace gmb::quota
