#ifndef GMB_TESTS_PRELOAD_PROGRAM_REFUSAL_H_
#define GMB_TESTS_PRELOAD_PROGRAM_REFUSAL_H_

// From now on the kernel refuses membarrier to this process, as the seccomp
// filter of a container may. False: it cannot be had.
bool RefuseMembarrier();

#endif  // GMB_TESTS_PRELOAD_PROGRAM_REFUSAL_H_
