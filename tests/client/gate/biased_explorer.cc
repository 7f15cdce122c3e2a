#include "tests/client/gate/biased_explorer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmb::internal::biased {

std::optional<std::string> Explorer::Reach() {
  State start;
  if (world_.late_thread) start.threads[world_.callers - 1].listed = false;
  visits_.push_back({Encode(start), 0, StepNumber("a new gate")});
  index_.emplace(visits_[0].key, 0);
  std::vector<Step> steps;
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    Steps(world_, broken_, Decode(visits_[at].key), &steps);
    for (const Step& step : steps) {
      const uint64_t key = Encode(step.to);
      const auto [found, inserted] =
          index_.try_emplace(key, static_cast<uint32_t>(visits_.size()));
      if (inserted) visits_.push_back({key, at, StepNumber(step.name)});
      const char* fault = step.fault;
      if (fault == nullptr && inserted) fault = Fault(step.to);
      if (fault != nullptr) {
        return WayTo(at, absl::StrCat(step.name, ": ", fault, "\n  ",
                                      Describe(step.to)));
      }
    }
    if (visits_.size() > kMostStates) return "too many states";
  }
  return std::nullopt;
}

std::optional<std::string> Explorer::Trap(const Is& from, const Follow& follow,
                                          const Is& good) const {
  // Predecessors, in one row: those of state i begin at starts[i].
  std::vector<std::pair<uint32_t, uint32_t>> edges;  // to, from
  std::vector<Step> steps;
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    Steps(world_, broken_, Decode(visits_[at].key), &steps);
    for (const Step& step : steps) {
      if (!follow(step)) continue;
      edges.emplace_back(index_.at(Encode(step.to)), at);
    }
  }
  std::vector<uint32_t> starts(visits_.size() + 1, 0);
  for (const auto& [to, at] : edges) ++starts[to + 1];
  for (size_t i = 1; i < starts.size(); ++i) starts[i] += starts[i - 1];
  std::vector<uint32_t> before(edges.size());
  std::vector<uint32_t> place(starts.begin(), starts.end() - 1);
  for (const auto& [to, at] : edges) before[place[to]++] = at;

  std::vector<bool> ends(visits_.size(), false);
  std::vector<uint32_t> queue;
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    if (!good(Decode(visits_[at].key))) continue;
    ends[at] = true;
    queue.push_back(at);
  }
  while (!queue.empty()) {
    const uint32_t to = queue.back();
    queue.pop_back();
    for (uint32_t i = starts[to]; i < starts[to + 1]; ++i) {
      if (ends[before[i]]) continue;
      ends[before[i]] = true;
      queue.push_back(before[i]);
    }
  }
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    if (!ends[at] && from(Decode(visits_[at].key))) return WayTo(at, "stuck");
  }
  return std::nullopt;
}

bool Explorer::Any(const Is& is) const {
  return std::any_of(visits_.begin(), visits_.end(),
                     [&](const Visit& visit) { return is(Decode(visit.key)); });
}

std::string Explorer::WayTo(uint32_t at, const std::string& what) const {
  std::vector<uint32_t> way = {at};
  while (way.back() != 0) way.push_back(visits_[way.back()].parent);
  std::reverse(way.begin(), way.end());
  std::string text;
  for (const uint32_t visit : way) {
    absl::StrAppend(&text, names_[visits_[visit].step], "\n  ",
                    Describe(Decode(visits_[visit].key)), "\n");
  }
  return absl::StrCat(text, what);
}

uint32_t Explorer::StepNumber(const char* name) {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found != names_.end()) {
    return static_cast<uint32_t>(found - names_.begin());
  }
  names_.push_back(name);
  return static_cast<uint32_t>(names_.size() - 1);
}

}  // namespace gmb::internal::biased
