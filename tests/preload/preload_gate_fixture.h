#ifndef GMB_TESTS_PRELOAD_PRELOAD_GATE_FIXTURE_H_
#define GMB_TESTS_PRELOAD_PRELOAD_GATE_FIXTURE_H_

#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/preload/preload_fixture.h"

namespace gmb::component {

// A broker that can keep contents off the device, and programs that park soon.
class PreloadGateTest : public PreloadTest {
 protected:
  // The bytes that the program of a test has, and those that another one takes
  // of the device.
  static constexpr uint64_t kBytes = 64 * kMiB;
  static constexpr uint64_t kTakeBytes = 480 * kMiB;

  void SetUp() override {
    StartGpuBroker({"cuda:0"}, {"--host-pool=256MiB"});
    MakeTenant("a");
    MakeTenant("b");
    ASSERT_TRUE(component::Await([&] { return Status().host_pool().done(); }));
  }

  static Words Soon() { return {"--park-after", "20ms"}; }

  // Another program takes so much that a's memory has to leave the device, and
  // has it until the file `end` is there.
  [[nodiscard]] std::unique_ptr<Program> TakeTheDevice(
      const std::string& end, uint64_t bytes = kTakeBytes) const {
    auto other =
        Start("other-" + end, {.steps = {absl::StrCat("alloc y ", bytes),
                                         PreloadTest::Await(end), "free y"},
                               .run_options = {"--wait", "20s", "--no-park"},
                               .tenant = "b"});
    EXPECT_TRUE(other->AwaitOut("alloc y 0")) << other->Err();
    EXPECT_EQ(Evicted(), kBytes);
    return other;
  }
  void TakeTheDeviceForAWhile(const std::string& end) const {
    const auto other = TakeTheDevice(end);
    Touch(end);
    EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
  }
  void ExpectNothingToTake(const std::string& name = "refused") const {
    const auto other =
        Start(name, {.steps = {absl::StrCat("alloc y ", kTakeBytes)},
                     .run_options = {"--wait", "300ms"},
                     .tenant = "b"});
    EXPECT_EQ(other->AwaitExit(), 0) << other->Err();
    EXPECT_THAT(other->Out(), ::testing::HasSubstr("alloc y 2\n"));
  }
  [[nodiscard]] uint64_t Evicted() const {
    v1::ListSessionsRequest request;
    request.set_tenant("a");
    const auto sessions = admin().ListSessions(request);
    return sessions.ok() && sessions->sessions_size() == 1
               ? sessions->sessions(0).evicted_bytes()
               : 0;
  }
  // How many of a's threads wait for its memory.
  [[nodiscard]] uint64_t Waiting() const {
    v1::ListSessionsRequest request;
    request.set_tenant("a");
    const auto sessions = admin().ListSessions(request);
    return sessions.ok() && sessions->sessions_size() == 1
               ? sessions->sessions(0).waiting()
               : 0;
  }
};

}  // namespace gmb::component

#endif  // GMB_TESTS_PRELOAD_PRELOAD_GATE_FIXTURE_H_
