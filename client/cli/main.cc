#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <string>
#include <vector>

#include "client/cli/app.h"
#include "client/cli/text/terminal.h"

int main(int argc, char** argv) {
  // What gRPC would log is in the errors that the commands report.
  // NOLINTNEXTLINE(concurrency-mt-unsafe): there are no threads yet
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  return static_cast<int>(gmb::cli::Run(
      arguments, gmb::cli::Terminal::Of(STDOUT_FILENO), std::cout, std::cerr));
}
