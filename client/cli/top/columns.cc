// `gmb top`: the columns of its panels, more of them on a wider terminal.
#include "client/cli/top/columns.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "client/cli/text/text.h"
#include "client/cli/top/short_text.h"

namespace gmb::cli::top {
namespace {

// From so many columns on there is room for what is good to know, too.
constexpr int kWide = 120;
constexpr int kVeryWide = 160;

Field Size(uint64_t bytes, Tone tone = Tone::kPlain) {
  return {ShortSizeOrDash(bytes), bytes == 0 ? Tone::kFaint : tone};
}

Field RateField(const Rate& rate) {
  const std::string text = ShortRate(rate);
  const bool is_still = text == "0" || text == "-";
  return {text, is_still ? Tone::kFaint : Tone::kPlain};
}

// Of bytes that were moved: they only add up.
Field Speed(const Rate& rate) {
  Field field = RateField(rate);
  field.text = std::string(absl::StripPrefix(field.text, "+"));
  return field;
}

// "3 active", "parked 12m"; "-" without a process.
Field StateOf(const TenantRow& row) {
  if (row.sessions == 0) return {"-", Tone::kFaint};
  if (row.active > 0) return {absl::StrCat(row.active, " active"), Tone::kGood};
  return {absl::StrCat("idle ", ShortTime(row.idle)), Tone::kPlain};
}

Field Waits(const TenantRow& row) {
  return Size(row.waiting_bytes, Tone::kWarning);
}

Tone ToneOf(v1::SessionInfo::Gate gate) {
  switch (gate) {
    case v1::SessionInfo::GATE_OFF:
      return Tone::kFaint;
    case v1::SessionInfo::GATE_ACTIVE:
      return Tone::kGood;
    case v1::SessionInfo::GATE_PARKED:
      return Tone::kPlain;
    default:
      return Tone::kWarning;
  }
}

Field GateOf(const SessionRow& row) {
  const v1::SessionInfo& info = row.info;
  if (!v1::SessionInfo::Gate_IsValid(info.gate()) ||
      info.gate() == v1::SessionInfo::GATE_UNSPECIFIED) {
    return {"-", Tone::kFaint};
  }
  const std::string word = absl::AsciiStrToLower(
      absl::StripPrefix(v1::SessionInfo::Gate_Name(info.gate()), "GATE_"));
  const absl::Duration idle = ToDuration(info.idle());
  return {idle > absl::ZeroDuration() ? absl::StrCat(word, " ", ShortTime(idle))
                                      : word,
          ToneOf(info.gate())};
}

Field NotesOf(const SessionRow& row) {
  if (!row.info.streaming()) return {"no stream", Tone::kWarning};
  if (!row.info.never_lends().empty())
    return {absl::StrCat("never parks: ", row.info.never_lends()),
            Tone::kFaint};
  return {};
}

Field NotesOf(const TenantRow& row) {
  if (row.view.over_limit_bytes() > 0) {
    return {absl::StrCat(ShortSize(row.view.over_limit_bytes()), " over limit"),
            Tone::kWarning};
  }
  if (row.view.unreturned_bytes() > 0) {
    return {absl::StrCat(ShortSize(row.view.unreturned_bytes()), " unreturned"),
            Tone::kWarning};
  }
  return {};
}

std::string NumberOrDash(uint64_t number) {
  return number == 0 ? "-" : absl::StrCat(number);
}

}  // namespace

std::vector<Column<TenantRow>> TenantColumns(int columns) {
  using Row = TenantRow;
  const bool wide = columns >= kWide;
  const bool very_wide = columns >= kVeryWide;
  std::vector<Column<Row>> list;
  const auto add = [&](Column<Row> column) {
    list.push_back(std::move(column));
  };
  add({"TENANT", wide ? 24 : 14, true, Sort::kName, [](const Row& row) {
         return Field{row.name, Tone::kStrong};
       }});
  if (wide) {
    add({"PROC", 5, false, std::nullopt,
         [](const Row& row) { return Field{NumberOrDash(row.sessions)}; }});
  }
  add({"STATE", 10, true, Sort::kIdle, &StateOf});
  add({"RESID", 5, false, Sort::kBytes,
       [](const Row& row) { return Size(row.resident_bytes, Tone::kAccent); }});
  if (wide) {
    add({"BORROW", 6, false, std::nullopt,
         [](const Row& row) { return Size(row.borrowed_bytes); }});
    add({"HARD", 5, false, std::nullopt,
         [](const Row& row) { return Size(row.hard_bytes); }});
  }
  add({"GUAR", 5, false, std::nullopt,
       [](const Row& row) { return Size(row.view.guarantee_bytes()); }});
  add({"LIMIT", 5, false, std::nullopt, [](const Row& row) {
         return Field{ShortSize(row.view.limit_bytes())};
       }});
  add({"EVICT", 5, false, Sort::kEvicted,
       [](const Row& row) { return Size(row.view.evicted_bytes()); }});
  add({"WAIT", 5, false, Sort::kWaiting, &Waits});
  add({"+/s", 6, false, Sort::kChange,
       [](const Row& row) { return RateField(row.change); }});
  if (wide) {
    add({"OUT/s", 6, false, std::nullopt,
         [](const Row& row) { return Speed(row.evicted); }});
    add({"IN/s", 6, false, std::nullopt,
         [](const Row& row) { return Speed(row.restored); }});
  }
  if (very_wide)
    add({"NOTE", 18, true, std::nullopt,
         [](const Row& row) { return NotesOf(row); }});
  return list;
}

std::vector<Column<SessionRow>> SessionColumns(int columns) {
  using Row = SessionRow;
  const bool wide = columns >= kWide;
  const bool very_wide = columns >= kVeryWide;
  std::vector<Column<Row>> list;
  const auto add = [&](Column<Row> column) {
    list.push_back(std::move(column));
  };
  add({"SESSION", wide ? 8 : 7, false, std::nullopt,
       [](const Row& row) { return Field{absl::StrCat(row.info.id())}; }});
  add({"PID", 7, false, std::nullopt, [](const Row& row) {
         return Field{row.info.pid() <= 0 ? "-" : absl::StrCat(row.info.pid())};
       }});
  add({"TENANT", wide ? 24 : 10, true, Sort::kName, [](const Row& row) {
         return Field{row.info.tenant(), Tone::kStrong};
       }});
  add({"PROGRAM", wide ? 16 : 8, true, std::nullopt,
       [](const Row& row) { return Field{row.info.program()}; }});
  if (wide) {
    add({"UID", 6, false, std::nullopt,
         [](const Row& row) { return Field{absl::StrCat(row.info.uid())}; }});
    add({"AGE", 4, false, std::nullopt, [](const Row& row) {
           return Field{ShortTime(absl::Now() - ToTime(row.info.since()))};
         }});
  }
  add({"GATE", wide ? 11 : 10, true, Sort::kIdle, &GateOf});
  add({"RESID", 5, false, Sort::kBytes,
       [](const Row& row) { return Size(row.resident_bytes, Tone::kAccent); }});
  add({"EVICT", 5, false, Sort::kEvicted,
       [](const Row& row) { return Size(row.info.evicted_bytes()); }});
  if (wide) {
    add({"BACKED", 6, false, std::nullopt,
         [](const Row& row) { return Size(row.info.backed_bytes()); }});
    add({"LEASES", 6, false, std::nullopt, [](const Row& row) {
           return Field{NumberOrDash(row.info.leases())};
         }});
  }
  add({"WAIT", 4, false, Sort::kWaiting, [](const Row& row) {
         return Field{NumberOrDash(row.info.waiting()),
                      row.info.waiting() > 0 ? Tone::kWarning : Tone::kFaint};
       }});
  add({"+/s", 6, false, Sort::kChange,
       [](const Row& row) { return RateField(row.change); }});
  if (very_wide)
    add({"NOTE", 32, true, std::nullopt,
         [](const Row& row) { return NotesOf(row); }});
  return list;
}

}  // namespace gmb::cli::top
