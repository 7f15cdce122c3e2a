#ifndef GMB_BROKER_DAEMON_PROGRAM_H_
#define GMB_BROKER_DAEMON_PROGRAM_H_

namespace gmb::broker {

// The whole of gmbd, on the process's main thread: reads the command line, and
// serves until a signal stops it. Returns the process's exit code.
int RunProgram(int argc, char** argv);

}  // namespace gmb::broker

#endif  // GMB_BROKER_DAEMON_PROGRAM_H_
