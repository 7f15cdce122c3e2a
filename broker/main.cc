// gmbd: the GPU memory broker.
#include "broker/daemon/program.h"

int main(int argc, char** argv) { return gmb::broker::RunProgram(argc, argv); }
