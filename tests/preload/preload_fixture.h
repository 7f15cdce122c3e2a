#ifndef GMB_TESTS_PRELOAD_PRELOAD_FIXTURE_H_
#define GMB_TESTS_PRELOAD_PRELOAD_FIXTURE_H_

#include <memory>
#include <string>
#include <vector>

#include "tests/component/component_test.h"

namespace gmb::component {

using Words = std::vector<std::string>;

// The orders to `program_main.cc`, and how it finds the driver.
struct ProgramRun {
  std::string how = "proc";
  Words steps;
  Words run_options = {};  // of `gmb run`, besides the tenant
  std::string tenant = "a";
  Words environment = {};  // "NAME=VALUE" each
  // kExportsARunTime: C++'s, which the program has within itself.
  enum Built { kAsUsual, kExportsARunTime, kWithoutPie } how_built = kAsUsual;
};

// A gmbd with a pool of 512 MiB on a GPU of the fake driver, which has two;
// tenant a may have 256 MiB of it. Programs run under `gmb run`.
class PreloadTest : public ComponentTest {
 protected:
  void SetUp() override;
  void StartGpuBroker(Words devices = {"cuda:0"}, Words flags = {});

  // `env` and the words that make a program find the fake driver.
  static Words WithFakeDriver(Words words);
  std::unique_ptr<Program> Start(const std::string& name,
                                 const ProgramRun& run) const;
  // The lines that it printed; it has to end with 0.
  Words Run(const ProgramRun& run) const;

  void Touch(const std::string& name) const;
  // A step that waits for it.
  [[nodiscard]] std::string Await(const std::string& name) const;

  // Waits until the tenant's only session has its gate so.
  void AwaitGate(const std::string& tenant, v1::SessionInfo::Gate gate) const;
  // Waits until the tenant's leases are of these sizes.
  void ExpectLeases(const std::string& tenant,
                    std::vector<uint64_t> bytes) const;
};

}  // namespace gmb::component

#endif  // GMB_TESTS_PRELOAD_PRELOAD_FIXTURE_H_
