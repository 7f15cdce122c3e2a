// `gmb top`: what was seen, as a screen.
#include "client/cli/top/frame.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/line.h"
#include "client/cli/text/text.h"
#include "client/cli/top/columns.h"
#include "client/cli/top/heading.h"
#include "client/cli/top/short_text.h"
#include "client/cli/views/event_view.h"
#include "client/cli/views/tenant_bar.h"

namespace gmb::cli::top {
namespace {

constexpr int kLeastBar = 8;
constexpr int kMostBar = 60;
constexpr size_t kMostMoves = 8;

constexpr const char* kHelp[] = {
    "q F10 Ctrl-C   quit",
    "space Enter    look again now",
    "d s            seconds between two looks",
    "M              sort by bytes on the device",
    "C E W T N      sort by change, evicted, waiting, idle time, name",
    "< >            the sort before, and after",
    "R              reverse the order",
    "i              leave out parked processes, and tenants without leases",
    "/ u            only tenants with this in their names (empty: all)",
    "Tab            scroll the other panel",
    "Up Down PgUp PgDn Home End   scroll",
    "h ? F1         this page; any key leaves it",
    "",
    "Sizes are powers of 1024: 12.3G is 12.3 GiB.",
    "RESID is on the device, EVICT is not; +/s is RESID's change a second.",
    "OUT/s and IN/s is what was evicted and restored.",
    "Bars of tenants are to the scale of the largest; the pool's is its whole.",
};

template <typename Row>
int WidthOf(const std::vector<Column<Row>>& columns) {
  int width = 0;
  for (const Column<Row>& column : columns) width += column.width + 1;
  return width;
}

// "1-12 of 500", or "500" when all are seen; "1/500" where there is less room.
std::string Where(size_t first, size_t shown, size_t all, int room) {
  if (shown == all) return absl::StrCat(all);
  const std::string where =
      absl::StrCat(first + 1, "-", first + shown, " of ", all);
  return DisplayWidth(where) <= static_cast<size_t>(std::max(0, room))
             ? where
             : absl::StrCat(first + 1, "/", all);
}

// The title of a panel, and in its first left column where in it we are.
template <typename Row>
std::string TitleOf(const std::vector<Column<Row>>& columns, const Scene& scene,
                    bool chosen, size_t first, size_t shown, size_t all,
                    const Terminal& terminal) {
  Line line(terminal);
  for (const Column<Row>& column : columns) {
    const Tone tone =
        column.sort == scene.choice.sort ? Tone::kChosenTitle : Tone::kTitle;
    if (column.is_left)
      line.AddLeft(tone, column.title, column.width);
    else
      line.AddRight(tone, column.title, column.width);
    line.Add(Tone::kTitle, " ");
  }
  const int rest = line.left();
  line.AddLeft(chosen ? Tone::kChosenTitle : Tone::kTitle,
               Where(first, shown, all, rest), rest);
  return line.text();
}

template <typename Row>
Line RowOf(const std::vector<Column<Row>>& columns, const Row& row,
           const Terminal& terminal) {
  Line line(terminal);
  for (const Column<Row>& column : columns) {
    const Field field = column.field(row);
    if (column.is_left)
      line.AddLeft(field.tone, field.text, column.width);
    else
      line.AddRight(field.tone, field.text, column.width);
    line.Add(Tone::kPlain, " ");
  }
  return line;
}

// So that a bar shows something also where no tenant has much of the pool.
uint64_t ScaleOf(const std::vector<TenantRow>& rows) {
  uint64_t largest = 0;
  for (const TenantRow& row : rows) {
    largest = std::max(
        {largest, row.view.leased_bytes(), row.view.guarantee_bytes()});
  }
  return largest;
}

int BarOf(int used, const Terminal& terminal) {
  const int left = terminal.columns - 1 - used;
  return left < kLeastBar ? 0 : std::min(left, kMostBar);
}

void DrawTenants(const Rows& rows, const Scene& scene, size_t first,
                 size_t most, const Terminal& terminal,
                 std::vector<std::string>* frame) {
  const auto columns = TenantColumns(terminal.columns);
  const size_t all = rows.tenants.size();
  const size_t shown = std::min(most, all - std::min(first, all));
  frame->push_back(TitleOf(columns, scene, scene.panel == Panel::kTenants,
                           first, shown, all, terminal));
  const uint64_t scale = ScaleOf(rows.tenants);
  const int bar = BarOf(WidthOf(columns), terminal);
  for (size_t i = first; i < first + shown; ++i) {
    const TenantRow& row = rows.tenants[i];
    Line line = RowOf(columns, row, terminal);
    if (bar > 0)
      line.AddPainted(TenantBar(row.view, scale, bar, terminal), bar);
    frame->push_back(line.text());
  }
  if (all == 0) {
    frame->push_back(
        Line(terminal)
            .Add(Tone::kFaint,
                 scene.choice.tenant_part.empty() && !scene.choice.hide_idle
                     ? "no tenants; `gmb tenant set NAME` makes one"
                     : "no tenant is left by / and i")
            .text());
  }
}

void DrawSessions(const Rows& rows, const Scene& scene, size_t first,
                  size_t most, const Terminal& terminal,
                  std::vector<std::string>* frame) {
  const auto columns = SessionColumns(terminal.columns);
  const size_t all = rows.sessions.size();
  const size_t shown = std::min(most, all - std::min(first, all));
  frame->push_back(TitleOf(columns, scene, scene.panel == Panel::kSessions,
                           first, shown, all, terminal));
  for (size_t i = first; i < first + shown; ++i)
    frame->push_back(RowOf(columns, rows.sessions[i], terminal).text());
  if (all == 0)
    frame->push_back(Line(terminal).Add(Tone::kFaint, "no processes").text());
}

void DrawMoves(const Sight& sight, size_t most, const Terminal& terminal,
               std::vector<std::string>* frame) {
  if (most == 0) return;
  Line title(terminal);
  const int width = title.left();
  frame->push_back(title.AddLeft(Tone::kTitle, "LAST MOVES", width).text());
  const size_t count = std::min(most, sight.moves.size());
  for (size_t i = 0; i < count; ++i) {
    const v1::Event& event = sight.moves[sight.moves.size() - 1 - i];
    Line line(terminal);
    line.Add(Tone::kFaint, absl::FormatTime("%H:%M:%S ", ToTime(event.at()),
                                            absl::LocalTimeZone()))
        .AddLeft(ToneOfEvent(event.kind()), event.kind(), 15);
    if (!event.tenant().empty())
      line.Add(Tone::kPlain, " ").Add(Tone::kStrong, event.tenant());
    if (event.session_id() != 0)
      line.Add(Tone::kPlain, absl::StrCat(" session ", event.session_id()));
    if (event.bytes() != 0)
      line.Add(Tone::kPlain, absl::StrCat("  ", ShortSize(event.bytes())));
    if (event.has_took())
      line.Add(Tone::kPlain,
               absl::StrCat(" in ", DurationText(ToDuration(event.took()))));
    if (!event.message().empty())
      line.Add(Tone::kFaint, absl::StrCat("  ", event.message()));
    frame->push_back(line.text());
  }
  for (size_t i = count; i < most; ++i) {
    const bool is_none = i == 0;
    frame->push_back(
        Line(terminal)
            .Add(Tone::kFaint, is_none ? "none since this began" : "")
            .text());
  }
}

std::string Keys(const Terminal& terminal) {
  Line line(terminal);
  for (const auto& [key, what] : {std::pair{"q", "quit"},
                                  {"h", "help"},
                                  {"M", "bytes"},
                                  {"W", "waiting"},
                                  {"T", "idle"},
                                  {"N", "name"},
                                  {"R", "reverse"},
                                  {"/", "filter"},
                                  {"Tab", "panel"},
                                  {"i", "hide idle"},
                                  {"d", "delay"}}) {
    const int width = static_cast<int>(DisplayWidth(key) + DisplayWidth(what));
    if (line.left() < width + 3) break;
    line.Add(Tone::kStrong, key)
        .Add(Tone::kFaint, absl::StrCat(" ", what, "  "));
  }
  return line.text();
}

std::vector<std::string> DrawHelp(const Terminal& terminal, size_t height) {
  std::vector<std::string> frame;
  frame.push_back(Line(terminal).Add(Tone::kStrong, "gmb top").text());
  for (const char* const line : kHelp)
    frame.push_back(Line(terminal).Add(Tone::kPlain, line).text());
  frame.resize(height);
  return frame;
}

// How many lines each part of the screen has.
struct Shares {
  size_t tenants = 0, sessions = 0, moves = 0;
};

// `room`: lines that titles and what stands above and below have left.
Shares Share(size_t room, size_t tenants, size_t sessions) {
  Shares shares;
  // One for their title; on a low screen there are none.
  if (room >= 10) shares.moves = std::clamp<size_t>(room / 7, 1, kMostMoves);
  if (shares.moves > 0) room -= shares.moves + 1;
  // Without rows a sentence says so.
  tenants = std::max<size_t>(1, tenants);
  sessions = std::max<size_t>(1, sessions);
  shares.tenants = std::min(tenants, room - std::min(sessions, room / 2));
  shares.sessions = std::min(sessions, room - shares.tenants);
  return shares;
}

}  // namespace

std::vector<std::string> DrawScreen(const Sight& sight, const Scene& scene,
                                    const Terminal& terminal, Extent* extent) {
  const auto height = static_cast<size_t>(std::max(1, terminal.rows));
  *extent = Extent();
  if (scene.help) return DrawHelp(terminal, height);
  const Rows rows = MakeRows(sight, scene.choice);
  std::vector<std::string> frame = DrawHeading(sight, scene, rows, terminal);
  if (sight.look != nullptr) {
    // Titles of two panels, and the line of keys.
    const size_t taken = frame.size() + 3;
    const Shares shares = Share(height > taken ? height - taken : 0,
                                rows.tenants.size(), rows.sessions.size());
    const auto first = [](size_t wanted, size_t all, size_t shown) {
      return std::min(wanted, all - std::min(all, shown));
    };
    DrawTenants(rows, scene,
                first(scene.first_tenant, rows.tenants.size(), shares.tenants),
                shares.tenants, terminal, &frame);
    DrawSessions(
        rows, scene,
        first(scene.first_session, rows.sessions.size(), shares.sessions),
        shares.sessions, terminal, &frame);
    *extent = {.tenant_rows = shares.tenants,
               .session_rows = shares.sessions,
               .tenants = rows.tenants.size(),
               .sessions = rows.sessions.size()};
    if (frame.size() + shares.moves + 2 < height)
      frame.resize(height - shares.moves - 2);
    DrawMoves(sight, shares.moves, terminal, &frame);
  }
  frame.resize(height - 1);
  frame.push_back(scene.prompt.empty()
                      ? Keys(terminal)
                      : Line(terminal).Add(Tone::kStrong, scene.prompt).text());
  return frame;
}

std::vector<std::string> DrawOnce(const Sight& sight, const Scene& scene,
                                  const Terminal& terminal) {
  const Rows rows = MakeRows(sight, scene.choice);
  std::vector<std::string> frame = DrawHeading(sight, scene, rows, terminal);
  DrawTenants(rows, scene, 0, rows.tenants.size(), terminal, &frame);
  DrawSessions(rows, scene, 0, rows.sessions.size(), terminal, &frame);
  for (std::string& line : frame) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
  }
  return frame;
}

}  // namespace gmb::cli::top
