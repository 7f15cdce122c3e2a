// Of every test that has none of its own.
#include <gmock/gmock.h>

#include "tests/run_all.h"

int main(int argc, char** argv) {
  ::testing::InitGoogleMock(&argc, argv);
  return gmb::RunAllTests();
}
