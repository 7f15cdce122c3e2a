// The demo: one picture of the live screen.
#include "client/cli/demo/frame.h"

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/text/line.h"
#include "client/cli/text/text.h"
#include "client/cli/views/pool_bar.h"
#include "client/cli/views/tenant_bar.h"

namespace gmb::cli {
namespace {

constexpr int kNameColumns = 8;
constexpr int kSizeColumns = 12;
constexpr int kNoteColumns = 22;
constexpr int kLeastBarColumns = 20;
constexpr int kMostBarColumns = 60;

int BarColumns(const Terminal& terminal) {
  return std::clamp(
      terminal.columns - kNameColumns - kSizeColumns - kNoteColumns - 4,
      kLeastBarColumns, kMostBarColumns);
}

std::string TenantNote(const Picture& picture, const v1::Tenant& tenant) {
  const v1::TenantPool& pool = tenant.pools(0);
  if (pool.waiting() > 0)
    return absl::StrCat("waits for ", SizeText(pool.waiting_bytes()));
  if (pool.view().over_limit_bytes() > 0) {
    return absl::StrCat(SizeText(pool.view().over_limit_bytes()),
                        " over limit");
  }
  if (pool.evicted_bytes() > 0)
    return absl::StrCat(SizeText(pool.evicted_bytes()), " evicted");
  const auto note = picture.notes.find(tenant.name());
  return note == picture.notes.end() ? "" : note->second;
}

void DrawPool(const Picture& picture, const Terminal& terminal,
              std::vector<std::string>* frame) {
  const v1::PoolStatus& pool = picture.snapshot.pool();
  frame->push_back(
      Line(terminal)
          .Add(Tone::kStrong, "gmb demo  ")
          .Add(Tone::kPlain,
               absl::StrCat(
                   pool.device().name(), ", pool of ",
                   SizeText(pool.capacity_bytes()), ", ",
                   CountText(picture.snapshot.status.leases(), "lease"), "  "))
          .Add(Tone::kFaint, DurationText(picture.elapsed))
          .text());
  const int columns = BarColumns(terminal);
  frame->push_back(
      Line(terminal)
          .Add(Tone::kPlain, absl::StrFormat("%-*s", kNameColumns, "pool"))
          .AddPainted(PoolBar(pool, columns, terminal), columns)
          .Add(Tone::kPlain, absl::StrFormat("%*s", kSizeColumns,
                                             SizeText(pool.granted_bytes())))
          .Add(Tone::kFaint, " granted")
          .text());
  Line parts(terminal);
  parts.Add(Tone::kPlain, std::string(kNameColumns, ' '));
  for (const PoolPart& part : PartsOf(pool)) {
    if (part.bytes == 0) continue;
    parts
        .Add(part.tone, terminal.unicode ? std::string(part.block)
                                         : std::string(1, part.ascii_block))
        .Add(Tone::kFaint,
             absl::StrCat(" ", part.name, " ", SizeText(part.bytes), "  "));
  }
  frame->push_back(parts.text());
}

void DrawTenants(const Picture& picture, const Terminal& terminal,
                 std::vector<std::string>* frame) {
  const int columns = BarColumns(terminal);
  for (const v1::Tenant& tenant : picture.snapshot.tenants.tenants()) {
    if (tenant.pools().empty()) continue;
    const v1::TenantPool& pool = tenant.pools(0);
    const bool troubled =
        pool.waiting() > 0 || pool.view().over_limit_bytes() > 0;
    frame->push_back(
        Line(terminal)
            .Add(Tone::kStrong,
                 absl::StrFormat("%-*s", kNameColumns, tenant.name()))
            .AddPainted(TenantBar(pool.view(), pool.view().pool_bytes(),
                                  columns, terminal),
                        columns)
            .Add(Tone::kPlain,
                 absl::StrFormat("%*s", kSizeColumns,
                                 SizeText(pool.view().leased_bytes())))
            .Add(troubled ? Tone::kWarning : Tone::kFaint,
                 absl::StrCat(" ", TenantNote(picture, tenant)))
            .text());
  }
  const BarGlyphs glyphs = BarGlyphsFor(terminal);
  frame->push_back(
      Line(terminal)
          .Add(Tone::kPlain, std::string(kNameColumns, ' '))
          .Add(Tone::kGood, glyphs.held)
          .Add(Tone::kFaint, " within its guarantee  ")
          .Add(Tone::kAccent, glyphs.borrowed)
          .Add(Tone::kFaint, " borrowed  ")
          .Add(Tone::kFaint, absl::StrCat(glyphs.evicted, " evicted  "))
          .Add(Tone::kWarning, glyphs.guarantee)
          .Add(Tone::kFaint, " guarantee  ")
          .Add(Tone::kBad, glyphs.limit)
          .Add(Tone::kFaint, " limit")
          .text());
}

}  // namespace

std::vector<std::string> DrawFrame(const Picture& picture,
                                   const Terminal& terminal) {
  std::vector<std::string> frame;
  if (picture.has_snapshot) {
    DrawPool(picture, terminal, &frame);
    frame.emplace_back();
    DrawTenants(picture, terminal, &frame);
    frame.emplace_back();
  }
  frame.push_back(Line(terminal).Add(Tone::kStrong, picture.act).text());
  // One row stays free for the cursor.
  const size_t rows = static_cast<size_t>(std::max(2, terminal.rows - 1));
  std::vector<std::string> story;
  for (const auto& [tone, text] : picture.lines) {
    std::string indent = "  ";
    for (const std::string& part :
         Wrap(text, static_cast<size_t>(std::max(20, terminal.columns - 6)))) {
      story.push_back(Line(terminal).Add(tone, indent + part).text());
      indent = "    ";
    }
  }
  const size_t room = frame.size() < rows ? rows - frame.size() : 0;
  const size_t count = std::min(room, story.size());
  frame.insert(frame.end(), story.end() - static_cast<ptrdiff_t>(count),
               story.end());
  if (frame.size() > rows) frame.resize(rows);
  return frame;
}

}  // namespace gmb::cli
