#ifndef GMB_CLIENT_PRELOAD_NEWER_PROGRAM_H_
#define GMB_CLIENT_PRELOAD_NEWER_PROGRAM_H_

namespace gmb::preload {

// A program that was built for a CUDA newer than is known here, on a driver that
// is as new. Functions that it finds by their names are known or have a tripwire.
// But its CUDA runtime has tables of the driver's internal functions
// (cuGetExportTable), which may have grown; nothing of that is seen. Therefore
// such a process is never parked. On an older driver the tables are the old ones,
// and an older program knows no more of them.

// A function was looked up as it is in this CUDA version. The CUDA runtime
// looks up all that it knows, so that this tells how new it is. Thread-safe.
void NoteLookup(int cuda_version);

}  // namespace gmb::preload

#endif  // GMB_CLIENT_PRELOAD_NEWER_PROGRAM_H_
