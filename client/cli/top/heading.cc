// `gmb top`: the broker and its pools, above the panels.
#include "client/cli/top/heading.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/cli/text/line.h"
#include "client/cli/text/text.h"
#include "client/cli/top/short_text.h"
#include "client/cli/views/pool_bar.h"

namespace gmb::cli::top {
namespace {

constexpr int kNameColumns = 12;
constexpr int kMostPools = 8;
constexpr int kMostPoolBar = 80;

std::string TitleLine(const Sight& sight, const Scene& scene,
                      const Terminal& terminal) {
  Line line(terminal);
  line.Add(Tone::kStrong, "gmb top  ")
      .Add(Tone::kPlain,
           absl::FormatTime("%H:%M:%S %Z", scene.now, absl::LocalTimeZone()));
  if (sight.look == nullptr) return line.text();
  const v1::GetStatusResponse& status = sight.look->status;
  line.Add(Tone::kPlain,
           absl::StrCat("  up ", AgeText(status.started(), scene.now), "  ",
                        CountText(status.tenants(), "tenant"), "  ",
                        status.sessions(),
                        status.sessions() == 1 ? " process  " : " processes  ",
                        CountText(status.leases(), "lease")));
  line.Add(Tone::kFaint, absl::StrCat("  gmbd ", status.broker_version(),
                                      " in ", scene.socket_dir));
  return line.text();
}

// Why there is nothing new, in the place of what the processes do.
std::string TroubleLine(const Sight& sight, const Scene& scene,
                        const Terminal& terminal) {
  return Line(terminal)
      .Add(Tone::kBad, absl::StrCat("no answer for ",
                                    ShortTime(scene.now - sight.trouble_since),
                                    ", still trying"))
      .Add(Tone::kPlain, absl::StrCat(": ", sight.trouble.message()))
      .text();
}

std::string StateLine(const Sight& sight, const Scene& scene, const Rows& rows,
                      const Terminal& terminal) {
  Line line(terminal);
  if (sight.look->status.draining())
    line.Add(Tone::kWarning, "the broker is stopping  ");
  const auto count = [&](Tone tone, uint64_t number, const char* what) {
    line.Add(number == 0 ? Tone::kFaint : tone,
             absl::StrCat(number, " ", what, "  "));
  };
  count(Tone::kGood, rows.active, "active");
  count(Tone::kPlain, rows.parked, "parked");
  count(Tone::kWarning, rows.pausing, "pausing");
  count(Tone::kWarning, rows.closed, "closed");
  count(Tone::kPlain, rows.gates_off, "off");
  line.Add(Tone::kFaint, "| ");
  uint64_t waiting = 0;
  uint64_t bytes = 0;
  for (const v1::PoolStatus& pool : sight.look->status.pools()) {
    waiting += pool.waiting();
    bytes += pool.waiting_bytes();
  }
  line.Add(waiting > 0 ? Tone::kWarning : Tone::kFaint,
           waiting > 0
               ? absl::StrCat(waiting, " waiting for ", ShortSize(bytes))
               : "nobody waits");
  std::string order = absl::StrCat("  by ", NameOf(scene.choice.sort));
  if (scene.choice.reversed) order += " reversed";
  if (scene.choice.hide_idle) order += ", not idle";
  if (!scene.choice.tenant_part.empty())
    absl::StrAppend(&order, ", tenants ", scene.choice.tenant_part);
  line.Add(Tone::kFaint, order);
  return line.text();
}

void DrawPool(const Sight& sight, const v1::PoolStatus& pool,
              const Terminal& terminal, std::vector<std::string>* frame) {
  // "GPU-8f5c1c2e" tells GPUs apart.
  Line line(terminal);
  const int bar = std::clamp(terminal.columns - 54, 10, kMostPoolBar);
  line.AddLeft(Tone::kStrong, pool.device().uuid(), kNameColumns)
      .Add(Tone::kPlain, " ")
      .AddPainted(PoolBar(pool, bar, terminal), bar)
      .Add(Tone::kPlain, absl::StrCat(" ", ShortSize(pool.granted_bytes()),
                                      " of ", ShortSize(pool.capacity_bytes())))
      .Add(Tone::kFaint,
           absl::StrCat(" guar ", ShortSize(pool.guaranteed_bytes())));
  if (pool.waiting() > 0) {
    line.Add(Tone::kWarning,
             absl::StrCat(" wait ", ShortSize(pool.waiting_bytes())));
  }
  const Rate evicted = EvictedOn(sight, pool.device().uuid());
  const Rate restored = RestoredOn(sight, pool.device().uuid());
  if (evicted.value_or(0) >= 1 || restored.value_or(0) >= 1) {
    line.Add(Tone::kAccent, absl::StrCat(" out ", ShortRate(evicted), "/s in ",
                                         ShortRate(restored), "/s"));
  }
  if (pool.draining()) line.Add(Tone::kWarning, " draining");
  line.Add(Tone::kFaint, absl::StrCat("  ", pool.device().name()));
  frame->push_back(line.text());
  if (!pool.problem().empty()) {
    frame->push_back(Line(terminal)
                         .Add(Tone::kBad, "problem: ")
                         .Add(Tone::kPlain, pool.problem())
                         .text());
  }
}

// The parts of the bars, added up over the pools.
void DrawLegend(const v1::GetStatusResponse& status, const Terminal& terminal,
                std::vector<std::string>* frame) {
  v1::PoolStatus sum;
  for (const v1::PoolStatus& pool : status.pools()) {
    sum.set_granted_bytes(sum.granted_bytes() + pool.granted_bytes());
    sum.set_returned_bytes(sum.returned_bytes() + pool.returned_bytes());
    sum.set_ready_bytes(sum.ready_bytes() + pool.ready_bytes());
    sum.set_float_bytes(sum.float_bytes() + pool.float_bytes());
    sum.set_scrubbing_bytes(sum.scrubbing_bytes() + pool.scrubbing_bytes());
    sum.set_unreturned_bytes(sum.unreturned_bytes() + pool.unreturned_bytes());
    sum.set_missing_bytes(sum.missing_bytes() + pool.missing_bytes());
  }
  Line line(terminal);
  line.Add(Tone::kPlain, std::string(kNameColumns + 1, ' '));
  for (const PoolPart& part : PartsOf(sum)) {
    if (part.bytes == 0) continue;
    line.Add(part.tone, terminal.unicode ? std::string(part.block)
                                         : std::string(1, part.ascii_block))
        .Add(Tone::kFaint,
             absl::StrCat(" ", part.name, " ", ShortSize(part.bytes), "  "));
  }
  frame->push_back(line.text());
}

void DrawHostPool(const v1::HostPoolStatus& pool, const Terminal& terminal,
                  std::vector<std::string>* frame) {
  if (pool.bytes() == 0) return;
  Line line(terminal);
  line.AddLeft(Tone::kStrong, "host pool", kNameColumns)
      .Add(Tone::kPlain,
           absl::StrCat(" ", ShortSize(pool.held_bytes()), " held, ",
                        ShortSize(pool.reserved_bytes()), " reserved of ",
                        ShortSize(pool.bytes())));
  if (!pool.done()) line.Add(Tone::kWarning, ", being prepared");
  if (!pool.problem().empty())
    line.Add(Tone::kBad, absl::StrCat("  problem: ", pool.problem()));
  frame->push_back(line.text());
}

}  // namespace

std::vector<std::string> DrawHeading(const Sight& sight, const Scene& scene,
                                     const Rows& rows,
                                     const Terminal& terminal) {
  std::vector<std::string> frame;
  frame.push_back(TitleLine(sight, scene, terminal));
  if (!sight.trouble.ok()) {
    frame.push_back(TroubleLine(sight, scene, terminal));
  } else if (sight.look != nullptr) {
    frame.push_back(StateLine(sight, scene, rows, terminal));
  }
  if (sight.look == nullptr) return frame;
  const v1::GetStatusResponse& status = sight.look->status;
  int drawn = 0;
  int left_out = 0;
  for (const v1::PoolStatus& pool : status.pools()) {
    if (!scene.choice.device.empty() &&
        pool.device().uuid() != scene.choice.device) {
      continue;
    }
    if (drawn++ < kMostPools)
      DrawPool(sight, pool, terminal, &frame);
    else
      ++left_out;
  }
  if (left_out > 0) {
    frame.push_back(
        Line(terminal)
            .Add(Tone::kFaint, absl::StrCat("and ", CountText(left_out, "pool"),
                                            ": `gmb top --device UUID`"))
            .text());
  }
  DrawLegend(status, terminal, &frame);
  DrawHostPool(status.host_pool(), terminal, &frame);
  return frame;
}

}  // namespace gmb::cli::top
