#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"
#include "client/cli/top/controls.h"
#include "client/cli/top/frame.h"
#include "client/cli/top/keys.h"
#include "client/cli/top/short_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace gmb::cli::top {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr absl::Time kStart = absl::FromUnixSeconds(1'800'000'000);

void AddTenant(const std::string& name, uint64_t resident, uint64_t evicted,
               Look* look) {
  v1::Tenant* const tenant = look->tenants.add_tenants();
  tenant->set_name(name);
  tenant->set_sessions(1);
  v1::TenantPool* const pool = tenant->add_pools();
  pool->set_resident_bytes(resident);
  pool->set_evicted_bytes(evicted);
  v1::QuotaView* const view = pool->mutable_view();
  view->set_device("host-0");
  view->set_leased_bytes(resident + evicted);
  view->set_evicted_bytes(evicted);
  view->set_limit_bytes(1024 * kMiB);
  view->set_pool_bytes(1024 * kMiB);
}

void AddSession(uint64_t id, const std::string& tenant, uint64_t leased,
                v1::SessionInfo::Gate gate, absl::Duration idle, Look* look) {
  v1::SessionInfo* const session = look->sessions.add_sessions();
  session->set_id(id);
  session->set_tenant(tenant);
  session->set_program("python3");
  session->set_pid(static_cast<int32_t>(4000 + id));
  session->set_leased_bytes(leased);
  session->set_streaming(true);
  session->set_gate(gate);
  *session->mutable_idle() = ToProto(idle);
}

// chat holds 512 MiB and works, batch 256 MiB and 128 MiB evicted and sleeps,
// idle holds nothing.
std::shared_ptr<Look> Busy() {
  auto look = std::make_shared<Look>();
  look->at = kStart;
  v1::PoolStatus* const pool = look->status.add_pools();
  pool->mutable_device()->set_uuid("host-0");
  pool->set_capacity_bytes(1024 * kMiB);
  pool->set_granted_bytes(768 * kMiB);
  pool->set_float_bytes(256 * kMiB);
  look->status.set_tenants(3);
  look->status.set_sessions(2);
  AddTenant("batch", 256 * kMiB, 128 * kMiB, look.get());
  AddTenant("chat", 512 * kMiB, 0, look.get());
  AddTenant("rest", 0, 0, look.get());
  AddSession(7, "chat", 512 * kMiB, v1::SessionInfo::GATE_ACTIVE,
             absl::ZeroDuration(), look.get());
  AddSession(8, "batch", 384 * kMiB, v1::SessionInfo::GATE_PARKED,
             absl::Minutes(12), look.get());
  return look;
}

Sight SightOf(std::shared_ptr<const Look> look,
              std::shared_ptr<const Look> before = nullptr) {
  Sight sight;
  sight.look = std::move(look);
  sight.before = std::move(before);
  return sight;
}

Scene SceneAtStart() {
  Scene scene;
  scene.now = kStart;
  scene.delay = absl::Seconds(2);
  scene.socket_dir = "/run/gmb";
  return scene;
}

Terminal TerminalOf(int columns, int rows) {
  Terminal terminal;
  terminal.columns = columns;
  terminal.rows = rows;
  return terminal;
}

std::string Screen(const Sight& sight, const Scene& scene, int columns,
                   int rows, Extent* extent = nullptr) {
  Extent unused;
  std::string text;
  for (const std::string& line :
       DrawScreen(sight, scene, TerminalOf(columns, rows),
                  extent == nullptr ? &unused : extent)) {
    absl::StrAppend(&text, line, "\n");
  }
  return text;
}

std::vector<std::string> Names(const std::vector<TenantRow>& rows) {
  std::vector<std::string> names;
  for (const TenantRow& row : rows) names.push_back(row.name);
  return names;
}

TEST(TopRowsTest, TheLargestComeFirstUnlessAnotherOrderIsChosen) {
  const Sight sight = SightOf(Busy());
  Choice choice;
  EXPECT_THAT(Names(MakeRows(sight, choice).tenants),
              ElementsAre("chat", "batch", "rest"));
  choice.reversed = true;
  EXPECT_THAT(Names(MakeRows(sight, choice).tenants),
              ElementsAre("rest", "batch", "chat"));
  choice.reversed = false;
  choice.sort = Sort::kEvicted;
  EXPECT_THAT(Names(MakeRows(sight, choice).tenants),
              ElementsAre("batch", "chat", "rest"));
  choice.sort = Sort::kName;
  EXPECT_THAT(Names(MakeRows(sight, choice).tenants),
              ElementsAre("batch", "chat", "rest"));
  choice.sort = Sort::kIdle;
  EXPECT_EQ(MakeRows(sight, choice).sessions[0].info.id(), 8U);
}

TEST(TopRowsTest, WhatIsIdleIsLeftOutWhenAskedFor) {
  Choice choice;
  choice.hide_idle = true;
  const Rows rows = MakeRows(SightOf(Busy()), choice);
  EXPECT_THAT(Names(rows.tenants), ElementsAre("chat", "batch"));
  ASSERT_EQ(rows.sessions.size(), 1U);
  EXPECT_EQ(rows.sessions[0].info.id(), 7U);
  EXPECT_EQ(rows.parked, 1U) << "is still counted";
}

TEST(TopRowsTest, RatesAreOfTheTimeBetweenTwoLooks) {
  const auto before = Busy();
  const auto look = Busy();
  look->at = kStart + absl::Seconds(2);
  look->tenants.mutable_tenants(1)->mutable_pools(0)->set_resident_bytes(256 *
                                                                         kMiB);
  look->moved[{"batch", "host-0"}] = {.evicted_bytes = 64 * kMiB,
                                      .restored_bytes = 0};
  const Sight sight = SightOf(look, before);
  Choice choice;
  choice.sort = Sort::kName;
  const Rows rows = MakeRows(sight, choice);
  EXPECT_EQ(rows.tenants[0].evicted, 32.0 * kMiB);
  EXPECT_EQ(rows.tenants[1].change, -128.0 * kMiB);
  EXPECT_EQ(EvictedOn(sight, "host-0"), 32.0 * kMiB);
  EXPECT_EQ(EvictedOn(sight, "host-1"), 0.0);
  EXPECT_EQ(MakeRows(SightOf(look), choice).tenants[1].change, std::nullopt);
}

TEST(TopFrameTest, AScreenIsAsHighAsTheTerminalAndNoLineIsWider) {
  const auto look = Busy();
  for (int i = 0; i < 500; ++i) {
    AddTenant(absl::StrCat("tenant-of-a-long-name-", i), i * kMiB, 0,
              look.get());
    AddSession(100 + i, "batch", i * kMiB, v1::SessionInfo::GATE_OFF,
               absl::ZeroDuration(), look.get());
  }
  Sight sight = SightOf(look);
  v1::Event move;
  move.set_kind("evicted");
  move.set_message(std::string(300, 'x'));
  sight.moves.assign(20, move);
  for (const bool unicode : {false, true}) {
    for (const int columns : {20, 80, 200}) {
      for (const int rows : {1, 5, 10, 24, 60}) {
        Terminal terminal = TerminalOf(columns, rows);
        terminal.unicode = unicode;
        Extent extent;
        const auto frame = DrawScreen(sight, SceneAtStart(), terminal, &extent);
        EXPECT_EQ(frame.size(), static_cast<size_t>(rows)) << columns;
        for (const std::string& line : frame) {
          EXPECT_LT(DisplayWidth(line), static_cast<size_t>(columns)) << line;
        }
      }
    }
  }
}

TEST(TopFrameTest, ItSaysWhereInALongListItIsInNarrowTerminalsToo) {
  const auto look = Busy();
  for (int i = 0; i < 1000; ++i) {
    AddSession(100 + i, "batch", kMiB, v1::SessionInfo::GATE_OFF,
               absl::ZeroDuration(), look.get());
  }
  Scene scene = SceneAtStart();
  scene.first_session = 989;
  EXPECT_THAT(Screen(SightOf(look), scene, 80, 24), HasSubstr("990/1002\n"));
  EXPECT_THAT(Screen(SightOf(look), scene, 200, 24),
              HasSubstr("990-1000 of 1002"));
}

TEST(TopFrameTest, ItShowsWhoHoldsWhoIsIdleAndWhoWaits) {
  const auto look = Busy();
  look->tenants.mutable_tenants(2)->mutable_pools(0)->set_waiting(2);
  look->tenants.mutable_tenants(2)->mutable_pools(0)->set_waiting_bytes(96 *
                                                                        kMiB);
  look->status.mutable_pools(0)->set_waiting(2);
  look->status.mutable_pools(0)->set_waiting_bytes(96 * kMiB);
  for (const int columns : {80, 200}) {
    const std::string screen =
        Screen(SightOf(look), SceneAtStart(), columns, 24);
    EXPECT_THAT(screen, HasSubstr("1 active  1 parked"));
    EXPECT_THAT(screen, HasSubstr("2 waiting for 96.0M"));
    EXPECT_THAT(screen, HasSubstr("idle 12m"));
    EXPECT_THAT(screen, HasSubstr("768M of 1.00G"));
    EXPECT_THAT(screen, HasSubstr("parked 12m"));
    EXPECT_THAT(screen, HasSubstr("q quit"));
  }
}

TEST(TopFrameTest, ABrokerThatIsGoneIsSaidToBeAndItsLastStateStays) {
  Sight sight = SightOf(Busy());
  sight.trouble = absl::UnavailableError("no broker answers in /run/gmb");
  sight.trouble_since = kStart - absl::Seconds(12);
  EXPECT_THAT(
      Screen(sight, SceneAtStart(), 80, 24),
      AllOf(HasSubstr("no answer for 12s, still trying: no broker answers"),
            HasSubstr("chat")));
  sight.look = nullptr;
  EXPECT_THAT(Screen(sight, SceneAtStart(), 80, 24),
              HasSubstr("still trying: no broker answers"));
}

TEST(TopFrameTest, WithoutTenantsItSaysWhatToDo) {
  const auto look = Busy();
  look->tenants.Clear();
  look->sessions.Clear();
  EXPECT_THAT(Screen(SightOf(look), SceneAtStart(), 80, 24),
              AllOf(HasSubstr("no tenants; `gmb tenant set NAME`"),
                    HasSubstr("no processes")));
}

TEST(TopFrameTest, ANameCannotMoveTheCursor) {
  const auto look = Busy();
  look->sessions.mutable_sessions(0)->set_program("\x1b[2J\nx");
  EXPECT_THAT(Screen(SightOf(look), SceneAtStart(), 80, 24),
              AllOf(HasSubstr("?[2J?x"), Not(HasSubstr("\x1b"))));
}

TEST(TopFrameTest, TextForAFileHasAllRowsAndNoKeys) {
  const auto look = Busy();
  for (int i = 0; i < 100; ++i)
    AddTenant(absl::StrCat("t", i), kMiB, 0, look.get());
  const auto frame =
      DrawOnce(SightOf(look), SceneAtStart(), TerminalOf(120, 24));
  EXPECT_GT(frame.size(), 103U);
  for (const std::string& line : frame) {
    EXPECT_THAT(line, Not(HasSubstr("q quit")));
    EXPECT_FALSE(absl::EndsWith(line, " "));
  }
}

TEST(TopTextTest, SizesFitIntoFiveCharacters) {
  EXPECT_EQ(ShortSize(0), "0");
  EXPECT_EQ(ShortSize(1023), "1023B");
  EXPECT_EQ(ShortSize(1536 * kMiB), "1.50G");
  EXPECT_EQ(ShortSize(12'595 * kMiB), "12.3G");
  EXPECT_EQ(ShortSize(1023 * kMiB + 900 * 1024), "1.00G");
  for (uint64_t bytes = 1; bytes != 0; bytes <<= 1) {
    EXPECT_LE(ShortSize(bytes).size(), 5U);
    EXPECT_LE(ShortSize(bytes - 1).size(), 5U);
    EXPECT_LE(ShortRate(-static_cast<double>(bytes)).size(), 6U);
  }
  EXPECT_LE(ShortRate(1e300).size(), 6U);
}

std::vector<Key> ReadAll(const std::vector<std::string>& pieces) {
  KeyReader reader;
  std::vector<Key> keys;
  for (const std::string& piece : pieces) {
    for (const Key key : reader.Read(piece)) keys.push_back(key);
  }
  return keys;
}

TEST(TopKeysTest, SequencesAreKeysInWhateverPiecesTheyCome) {
  EXPECT_THAT(ReadAll({"q\x1b[Bh"}), ElementsAre('q', kKeyDown, 'h'));
  EXPECT_THAT(ReadAll({"\x1b[", "5", "~q"}), ElementsAre(kKeyPageUp, 'q'));
  EXPECT_THAT(ReadAll({"\x1bOP\x1b[21~"}), ElementsAre(kKeyF1, kKeyF10));
  EXPECT_THAT(ReadAll({"\x1b"}), ElementsAre(kKeyEscape));
  EXPECT_THAT(ReadAll({"\x1bq"}), ElementsAre(kKeyEscape, 'q'));
  EXPECT_THAT(ReadAll({"\x1b[200;300z", "\xc3\xa4"}), IsEmpty());
  EXPECT_THAT(ReadAll({"\x1b[" + std::string(1000, '1') + "q"}), Not(IsEmpty()))
      << "one without an end is given up";
}

TEST(TopControlsTest, KeysSortFilterScrollAndEndIt) {
  Scene scene = SceneAtStart();
  Controls controls(&scene);
  const Extent extent{
      .tenant_rows = 10, .session_rows = 10, .tenants = 25, .sessions = 5};
  const auto press = [&](const std::vector<Key>& keys) {
    Controls::Next next = Controls::Next::kDraw;
    for (const Key key : keys) next = controls.Press(key, extent);
    return next;
  };
  press({kKeyPageDown, kKeyPageDown});
  EXPECT_EQ(scene.first_tenant, 15U) << "the last page is full";
  press({'\t', kKeyDown});
  EXPECT_EQ(scene.first_session, 0U) << "all of them are seen";
  press({'W'});
  EXPECT_EQ(scene.choice.sort, Sort::kWaiting);
  EXPECT_EQ(scene.first_tenant, 0U);
  press({'>'});
  EXPECT_EQ(scene.choice.sort, Sort::kIdle);
  press({'/', 'c', 'h', 'x', kKeyBackspace, '\r'});
  EXPECT_EQ(scene.choice.tenant_part, "ch");
  EXPECT_EQ(scene.prompt, "");
  press({'d', '0', '\r'});
  EXPECT_THAT(scene.prompt, HasSubstr("a number from 0.1"));
  press({'0', '.', '5', '\r'});
  EXPECT_EQ(scene.delay, absl::Milliseconds(500));
  press({'d', 'n', 'a', 'n', '\r', kKeyEscape});
  EXPECT_EQ(scene.delay, absl::Milliseconds(500));
  press({'h'});
  EXPECT_TRUE(scene.help);
  EXPECT_THAT(Screen(SightOf(Busy()), scene, 80, 24), HasSubstr("PgDn"));
  EXPECT_EQ(press({'x'}), Controls::Next::kDraw);
  EXPECT_FALSE(scene.help);
  EXPECT_EQ(press({' '}), Controls::Next::kLookNow);
  EXPECT_EQ(press({'/', 'q'}), Controls::Next::kDraw) << "is a letter here";
  EXPECT_EQ(press({kKeyEscape, 'q'}), Controls::Next::kQuit);
}

}  // namespace
}  // namespace gmb::cli::top
