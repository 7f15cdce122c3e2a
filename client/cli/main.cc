// gmb, the operator's command.
#include "client/cli/app.h"

int main(int argc, char** argv) {
  return gmb::cli::MainOf(gmb::cli::GmbProgram(), argc, argv);
}
