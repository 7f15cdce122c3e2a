#ifndef GMB_VERSION_H_
#define GMB_VERSION_H_

// The version of these headers. Valid C and C++.
#define GMB_VERSION_MAJOR 0
#define GMB_VERSION_MINOR 1
#define GMB_VERSION_PATCH 0
#define GMB_VERSION_STRING "0.1.0"

#endif  // GMB_VERSION_H_
