// Which sessions `gmb why` names, where there are very many.
#include "broker/report/session_sentences.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/broker/machine/machine_fixture.h"

namespace gmb::broker {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::IsEmpty;

class SessionSentencesTest : public MachineFixture {
 protected:
  static MachineWorld Wide() {
    MachineWorld shape;
    shape.options.max_sessions = 3000;
    return shape;
  }
  SessionSentencesTest() : MachineFixture(Wide()) { world.CheckEvery(1000); }

  // `waits`: for memory of others.
  std::vector<std::string> Sentences(const std::string& tenant, bool waits) {
    v1::ExplainResponse response;
    report::AddSessionSentences(state(), *state().tenants->Find(tenant),
                                world.now(), waits, &response);
    return {response.findings().begin(), response.findings().end()};
  }
};

TEST_F(SessionSentencesTest, ATenantsOwnAreFoundAndARestIsSaid) {
  SetTenant("many", {.max_sessions = 3000});
  SetTenant("a");
  for (int i = 0; i < 2100; ++i) Connect("many");
  v1::ClientMessage message;
  message.mutable_set_gate()->set_never_lends("a debugger is attached");
  Send(Connect("a"), message);
  const auto own = EndsWith("never parks: a debugger is attached");
  EXPECT_THAT(Sentences("a", false), ElementsAre(own));
  EXPECT_THAT(Sentences("a", true),
              ElementsAre(own,
                          "more sessions may never park, or wake often: "
                          "`gmb session list`"));
  EXPECT_THAT(Sentences("many", false),
              ElementsAre("more sessions may never park, or wake often: `gmb "
                          "session list`"));
  SetTenant("none");
  EXPECT_THAT(Sentences("none", false), IsEmpty());
}

}  // namespace
}  // namespace gmb::broker
