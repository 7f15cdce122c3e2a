// An hour of kills.
#include "bench/load/endurance_run.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/types/span.h"
#include "base/status_macros.h"
#include "bench/load/flatness.h"
#include "bench/load/op_figures.h"
#include "bench/quantile.h"

namespace gmb::bench {
namespace {

// Others of them are of no more use.
constexpr size_t kMostFaults = 50;
// Lines of gmbd's log that say that something did not outlive a broker.
constexpr const char* kLosses[] = {
    " record_set_aside ", " slab_not_imported ", " session_not_adopted ",
    " not_kept ",         " session_not_kept ",  " not_removed "};
// Of a session that just began or ended when its broker died: either the record
// or the connection was gone, or not there yet. Its client greets the next one,
// or has gone; the session of one that stays would be missed by it.
constexpr const char* kHalves[] = {": its connection is not kept",
                                   "the journal has no record of it"};
constexpr absl::Duration kEndPatience = absl::Minutes(1);
// In less the first samples are not like the last ones for other reasons.
constexpr absl::Duration kLeastToJudge = absl::Minutes(5);

bool HasOneOf(const std::string& line, absl::Span<const char* const> words) {
  return std::any_of(words.begin(), words.end(), [&](const char* word) {
    return absl::StrContains(line, word);
  });
}

// Beside the slabs: on a GPU those that are ready are others at the end.
bool HasMoreThan(const Sample& before, const Sample& now) {
  const double more = now.slabs - before.slabs;
  return now.broker.fds > before.broker.fds + more ||
         now.keeper.fds > before.keeper.fds + more ||
         now.kept_entries > before.kept_entries + more;
}

double MsSince(absl::Time since) {
  return absl::ToDoubleMilliseconds(absl::Now() - since);
}

void PrintTimes(const char* what, const std::vector<double>& ms) {
  std::printf("%-44s %6zu  median %.0f ms, p90 %.0f, longest %.0f\n", what,
              ms.size(), Quantile(ms, 0.5), Quantile(ms, 0.9), Quantile(ms, 1));
}

void PrintSample(const Sample& sample, Tally* tally) {
  std::printf(
      "%6.0f s  broker %5.1f MiB (%4.1f) %4.0f fds %3.0f thr | keeper %4.1f "
      "MiB "
      "(%3.1f) %4.0f fds %2.0f thr, %4.0f entries %5.0f MiB | sessions %3.0f "
      "leases %3.0f journal %4.0f of %.0f | shm %4.1f MiB | %llu calls\n",
      sample.seconds, sample.broker.rss_mib, sample.broker.anonymous_mib,
      sample.broker.fds, sample.broker.threads, sample.keeper.rss_mib,
      sample.keeper.anonymous_mib, sample.keeper.fds, sample.keeper.threads,
      sample.kept_entries, sample.kept_mib, sample.sessions, sample.leases,
      sample.journal_records, sample.journal_slots, sample.shm_mib,
      static_cast<unsigned long long>(tally->Calls()));
  std::fflush(stdout);
}

}  // namespace

EnduranceRun::EnduranceRun(const EnduranceOptions& options, SharedTally* tally,
                           std::stop_token stop)
    : options_(options),
      tally_(tally),
      stop_(std::move(stop)),
      client_deaths_(options.load.kill_client, options.load.seed),
      broker_deaths_(options.kill_broker, options.load.seed + 1),
      keeper_deaths_(options.kill_keeper, options.load.seed + 2) {}

void EnduranceRun::Blame(std::string fault) {
  std::printf("FAULT after %.1f s: %s\n",
              absl::ToDoubleSeconds(absl::Now() - start_), fault.c_str());
  std::fflush(stdout);
  faults_.push_back(std::move(fault));
}

absl::Status EnduranceRun::Run(const std::string& dir) {
  dir_ = dir;
  start_ = absl::Now();
  GMB_ASSIGN_OR_RETURN(stage_, LoadStage::Set(options_.load, dir));
  if (const std::string left = stage_->WhatIsLeft(); !left.empty())
    return absl::InternalError(absl::StrCat("at the start:", left));
  GMB_ASSIGN_OR_RETURN(first_, TakeSample(*stage_));
  PrintSample(first_, &**tally_);
  GMB_ASSIGN_OR_RETURN(Crew crew, stage_->StartCrew(tally_));
  crew_ = std::make_unique<Crew>(std::move(crew));
  if (absl::Status played = Play(); !played.ok()) Blame(played.ToString());
  for (std::string& fault : crew_->Finish()) Blame(std::move(fault));
  return LookAtTheEnd();
}

absl::Status EnduranceRun::Play() {
  const absl::Time end = absl::Now() + options_.length;
  next_look_ = absl::Now();
  while (absl::Now() < end && !stop_.stop_requested()) {
    absl::SleepFor(absl::Milliseconds(10));
    GMB_RETURN_IF_ERROR(DoWhatIsDue());
    for (std::string& fault : crew_->Faults()) Blame(std::move(fault));
    if (faults_.size() > kMostFaults)
      return absl::AbortedError("too many faults");
  }
  return absl::OkStatus();
}

absl::Status EnduranceRun::DoWhatIsDue() {
  if (client_deaths_.Due()) {
    GMB_RETURN_IF_ERROR(stage_->KillClient(client_deaths_.Roll(crew_->size()),
                                           crew_.get(), &**tally_));
    client_deaths_.Advance();
  }
  if (broker_deaths_.Due()) {
    GMB_RETURN_IF_ERROR(KillBroker());
    broker_deaths_.Advance();
  }
  if (keeper_deaths_.Due()) {
    const absl::Time killed = absl::Now();
    GMB_RETURN_IF_ERROR(stage_->KillKeeper());
    keeper_ms_.push_back(MsSince(killed));
    keeper_deaths_.Advance();
  }
  return absl::Now() < next_look_ ? absl::OkStatus() : Look();
}

// One of four is killed once more while it takes over. Not twice: what two
// brokers die of is set aside.
absl::Status EnduranceRun::KillBroker() {
  std::optional<absl::Duration> again;
  if (broker_deaths_.Roll(4) == 0) {
    again = absl::Milliseconds(broker_deaths_.Roll(300));
    ++killed_in_adoption_;
  }
  const absl::Time killed = absl::Now();
  GMB_RETURN_IF_ERROR(stage_->KillBroker(again));
  if (!again.has_value()) broker_ms_.push_back(MsSince(killed));
  return absl::OkStatus();
}

absl::Status EnduranceRun::Look() {
  const absl::Duration every =
      options_.sample_every > absl::ZeroDuration()
          ? options_.sample_every
          : std::min(absl::Minutes(1), options_.length / 30);
  next_look_ += every;
  GMB_ASSIGN_OR_RETURN(Sample sample, TakeSample(*stage_));
  sample.seconds = absl::ToDoubleSeconds(absl::Now() - start_);
  PrintSample(sample, &**tally_);
  samples_.push_back(sample);
  ReadLog();
  return absl::OkStatus();
}

void EnduranceRun::ReadLog() {
  std::ifstream log(dir_ + "/gmbd.log");
  log.seekg(static_cast<std::streamoff>(log_read_));
  for (std::string line; std::getline(log, line);) {
    log_read_ += line.size() + 1;
    if (HasOneOf(line, kHalves)) {
      ++halves_;
    } else if (HasOneOf(line, kLosses)) {
      Blame(line);
    }
  }
}

absl::Status EnduranceRun::LookAtTheEnd() {
  if (const std::string left = stage_->WhatIsLeft(); !left.empty())
    Blame(absl::StrCat("not back:", left));
  // Connections are closed a moment later.
  const absl::Time patience = absl::Now() + kEndPatience;
  do {
    GMB_ASSIGN_OR_RETURN(last_, TakeSample(*stage_));
    absl::SleepFor(absl::Milliseconds(20));
  } while (HasMoreThan(first_, last_) && absl::Now() < patience);
  last_.seconds = absl::ToDoubleSeconds(absl::Now() - start_);
  PrintSample(last_, &**tally_);
  ReadLog();
  if (HasMoreThan(first_, last_))
    Blame("more fds, or kept entries, beside the slabs than at the start");
  ended_ = true;
  return stage_->Stop();
}

bool EnduranceRun::Report() const {
  const double seconds = absl::ToDoubleSeconds(absl::Now() - start_);
  std::printf("\nafter %.0f s, --seed %llu\n", seconds,
              static_cast<unsigned long long>(options_.load.seed));
  std::printf(
      "%-44s %6llu\n", "clients killed",
      static_cast<unsigned long long>((*tally_)->of(Op::kKill).count()));
  PrintTimes("brokers killed once, until the next answers", broker_ms_);
  std::printf("%-44s %6llu\n", "killed twice, again while it took over",
              static_cast<unsigned long long>(killed_in_adoption_));
  PrintTimes("keepers killed, until the next one has all", keeper_ms_);
  std::printf("%-44s %6llu\n", "sessions that began or ended in a death",
              static_cast<unsigned long long>(halves_));
  std::printf("%-44s %6llu\n", "connects that met no broker for 2 s",
              static_cast<unsigned long long>((*tally_)->connects_again));
  PrintOps(&**tally_, seconds, 0);
  std::printf("refused: %s\n", (*tally_)->Refusals().c_str());
  std::printf(
      "verified %.1f GiB, given back unread %.1f MiB; words lost %llu, of "
      "others %llu\n",
      static_cast<double>((*tally_)->verified_bytes) / (uint64_t{1} << 30),
      static_cast<double>((*tally_)->unread_bytes) / (1 << 20),
      static_cast<unsigned long long>((*tally_)->lost_words),
      static_cast<unsigned long long>((*tally_)->foreign_words));
  bool flat = true;
  const bool judged = absl::Seconds(seconds) >= kLeastToJudge;
  if (!judged) std::puts("too short to say what grows:");
  std::printf("%-24s %9s %9s %9s %9s %9s\n", "", "empty", "first 3rd",
              "last 3rd", "allowed", "empty");
  for (const Watched& watched : kWatched) {
    std::vector<double> values;
    for (const Sample& sample : samples_) values.push_back(watched.of(sample));
    const Flatness flatness = FlatnessOf(values, watched.share, watched.slack);
    const bool grows = judged && !flatness.flat();
    flat = flat && !grows;
    std::printf("%-24s %9.1f %9.1f %9.1f %9.1f %9.1f%s\n", watched.name,
                watched.of(first_), flatness.first, flatness.last,
                flatness.allowed, watched.of(last_), grows ? "  GROWS" : "");
  }
  std::printf("%zu faults\n", faults_.size());
  for (const std::string& fault : faults_) std::printf("  %s\n", fault.c_str());
  return flat && ended_ && faults_.empty();
}

}  // namespace gmb::bench
