#include "bench/reclaim/measure_moves.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/reclaim/moving_owner.h"

namespace gmb::bench {
namespace {

using device::CopyDirection;

constexpr char kPlainOut[] = "plain copy to host";
constexpr char kPlainIn[] = "plain copy to device";

// The figures of one section.
class Sheet {
 public:
  Sheet(const Run& run, const MovesPlan& plan) : run_(run), plan_(plan) {}

  void Rate(const std::string& name, absl::Duration took,
            const std::string& beside = "", Goal goal = {}) {
    run_.figures->Add(plan_.section, name,
                      static_cast<double>(plan_.leases.total()) /
                          absl::ToDoubleSeconds(took) / 1e9,
                      {"GB/s", beside, goal});
  }
  void Time(const std::string& name, double seconds,
            const std::string& beside = "", Goal goal = {}) {
    run_.figures->Add(plan_.section, name, seconds * 1e3, {"ms", beside, goal});
  }
  // The plain way to hand memory over, its contents kept if `copied`; returns
  // its name.
  std::string PlainHandOver(absl::Duration copied) {
    if (run_.free_and_allocate == 0) return "";
    const std::string name =
        absl::StrCat(copied > absl::ZeroDuration() ? "plain copy + " : "",
                     run_.free_and_allocate_name);
    Time(name, absl::ToDoubleSeconds(copied) + run_.free_and_allocate);
    return name;
  }

 private:
  const Run& run_;
  const MovesPlan& plan_;
};

absl::Status MeasureRound(const Run& run, const MovesPlan& plan,
                          MovingOwner* owner, bool counts) {
  const uint64_t bytes = plan.leases.total();
  const auto plain_out = run.plain->Run(CopyDirection::kOut, bytes);
  if (!plain_out.ok()) return plain_out.status();
  if (absl::Status parked = owner->Park(); !parked.ok()) return parked;
  const auto taken = owner->GetTaken();
  if (!taken.ok()) return taken.status();
  const auto plain_in = run.plain->Run(CopyDirection::kIn, bytes);
  if (!plain_in.ok()) return plain_in.status();
  const auto back = owner->ComeBack();
  if (!back.ok()) return back.status();
  if (!counts) return absl::OkStatus();
  Sheet sheet(run, plan);
  sheet.Rate(kPlainOut, *plain_out);
  sheet.Rate("evicted, by the broker's events", taken->evicted.window,
             kPlainOut, plan.evict);
  sheet.Rate(kPlainIn, *plain_in);
  sheet.Rate("restored, by the broker's events", back->restored.window,
             kPlainIn, plan.restore);
  sheet.Rate("Client::Enter until it is in", back->entered, kPlainIn,
             plan.restore);
  const std::string hand_over = sheet.PlainHandOver(*plain_out);
  sheet.Time("another's request sent -> mapped",
             absl::ToDoubleSeconds(taken->mapped), hand_over);
  sheet.Time("Client::Enter", absl::ToDoubleSeconds(back->entered));
  return absl::OkStatus();
}

absl::Status MeasureBackedRound(const Run& run, const MovesPlan& plan,
                                MovingOwner* owner, bool counts) {
  if (absl::Status parked = owner->Park(); !parked.ok()) return parked;
  const absl::StatusOr<uint64_t> backed = run.stage->BackedBytes();
  if (!backed.ok()) return backed.status();
  if (*backed != plan.leases.total()) {
    return absl::InternalError(
        absl::StrCat("only ", *backed, " bytes are backed after a restore"));
  }
  const auto taken = owner->GetTaken();
  if (!taken.ok()) return taken.status();
  const auto back = owner->ComeBack();
  if (!back.ok()) return back.status();
  if (!counts) return absl::OkStatus();
  Sheet sheet(run, plan);
  const std::string hand_over = sheet.PlainHandOver(absl::ZeroDuration());
  sheet.Time("backed: another's request sent -> mapped",
             absl::ToDoubleSeconds(taken->mapped), hand_over, {.at_most = 5});
  sheet.Time("  of it: until the broker has it evicted",
             absl::ToDoubleSeconds(taken->evicted.window));
  sheet.Time("Client::Enter", absl::ToDoubleSeconds(back->entered));
  return absl::OkStatus();
}

// Enough memory is ready: nobody's is taken.
absl::Status MeasureReady(const Run& run, const MovesPlan& plan) {
  run.stage->events().Clear();
  for (Rounds rounds(plan); rounds.Next();) {
    absl::StatusOr<Stage::Taken> taken = run.stage->Take(plan.leases.total());
    if (!taken.ok()) return taken.status();
    absl::Status released = std::move(taken->lease).Release();
    if (released.ok()) released = run.stage->AwaitRest();
    if (!released.ok()) return released;
    if (!rounds.warm()) continue;
    Sheet(run, plan).Time("ready slabs suffice: sent -> mapped",
                          absl::ToDoubleSeconds(taken->took),
                          run.free_and_allocate_name, {.at_most = 5});
  }
  return run.stage->events().Has("evict_started")
             ? absl::InternalError("memory was taken, though some was free")
             : absl::OkStatus();
}

}  // namespace

absl::Status MeasureMoves(const Run& run, const MovesPlan& plan) {
  {
    absl::StatusOr<MovingOwner> owner =
        MovingOwner::Start(run.stage, plan.leases);
    if (!owner.ok()) return owner.status();
    for (Rounds rounds(plan); rounds.Next();) {
      absl::Status status = MeasureRound(run, plan, &*owner, rounds.warm());
      if (!status.ok()) return status;
    }
    if (absl::Status right = owner->owner().Check(); !right.ok()) return right;
  }
  return run.stage->Unfill();
}

absl::Status MeasureBacked(const Run& run, const MovesPlan& plan) {
  {
    absl::StatusOr<MovingOwner> owner =
        MovingOwner::Start(run.stage, plan.leases);
    if (!owner.ok()) return owner.status();
    absl::Status status = owner->owner().Seal();
    if (status.ok()) status = owner->Park();
    if (status.ok()) status = owner->GetTaken().status();  // the one copy
    if (status.ok()) status = owner->ComeBack().status();
    for (Rounds rounds(plan); status.ok() && rounds.Next();) {
      status = MeasureBackedRound(run, plan, &*owner, rounds.warm());
    }
    if (status.ok()) status = owner->owner().Check();
    if (!status.ok()) return status;
  }
  if (absl::Status rest = run.stage->Unfill(); !rest.ok()) return rest;
  return MeasureReady(run, plan);
}

}  // namespace gmb::bench
