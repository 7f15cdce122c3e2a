#include "bench/reclaim/measure_neighbours.h"

#include <poll.h>

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/reclaim/moving_owner.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kNeighbourBytes = uint64_t{1} << 30;
constexpr int kQuietMs = 250;

// The mean time of a launch while `what` is done.
template <typename What>
absl::StatusOr<double> MeanDuring(Child* neighbour, What what) {
  absl::Status status = neighbour->Ask("begin").status();
  if (status.ok()) status = what();
  if (!status.ok()) return status;
  return neighbour->AskNumber("end");
}

absl::Status MeasureRound(const Run& run, const MovesPlan& plan,
                          const std::string& kernel, MovingOwner* owner,
                          Child* neighbour, bool counts) {
  if (absl::Status parked = owner->Park(); !parked.ok()) return parked;
  const absl::StatusOr<double> quiet = MeanDuring(neighbour, [] {
    poll(nullptr, 0, kQuietMs);
    return absl::OkStatus();
  });
  if (!quiet.ok()) return quiet.status();
  const absl::StatusOr<double> out =
      MeanDuring(neighbour, [&] { return owner->GetTaken().status(); });
  if (!out.ok()) return out.status();
  const absl::StatusOr<double> in =
      MeanDuring(neighbour, [&] { return owner->ComeBack().status(); });
  if (!in.ok()) return in.status();
  if (!counts) return absl::OkStatus();
  const auto slower = [&](const std::string& when, double mean) {
    run.figures->Add(plan.section,
                     absl::StrCat(kernel, ": slower while ", when),
                     100 * (mean / *quiet - 1), {"%", "", {.at_most = 3}});
  };
  run.figures->Add(plan.section,
                   absl::StrCat(kernel, ": a launch, undisturbed"),
                   *quiet * 1e3, {"ms", ""});
  slower("evicted, destroyed, scrubbed", *out);
  slower("restored", *in);
  return absl::OkStatus();
}

absl::Status MeasureKernel(const Run& run, const MovesPlan& plan,
                           const std::string& kernel) {
  absl::StatusOr<Child> neighbour =
      run.stage->StartNeighbour(kernel, kNeighbourBytes);
  if (!neighbour.ok()) return neighbour.status();
  absl::StatusOr<MovingOwner> owner =
      MovingOwner::Start(run.stage, plan.leases);
  if (!owner.ok()) return owner.status();
  for (Rounds rounds(plan); rounds.Next();) {
    absl::Status status =
        MeasureRound(run, plan, kernel, &*owner, &*neighbour, rounds.warm());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status MeasureNeighbours(const Run& run, const MovesPlan& plan) {
  for (const char* kernel : {"fma", "copy"}) {
    absl::Status status = MeasureKernel(run, plan, kernel);
    status.Update(run.stage->Unfill());
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

}  // namespace gmb::bench
