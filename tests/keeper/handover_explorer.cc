#include "tests/keeper/handover_explorer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::keeper::model {

std::optional<std::string> Explorer::Reach() {
  const uint64_t start = Encode(State{});
  visits_.push_back({start, 0, "an empty keeper"});
  index_.emplace(start, 0);
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    const State from = Decode(visits_[at].key);
    for (const Step& step : Steps(world_, rules_, from)) {
      ++steps_;
      const uint64_t key = Encode(step.to);
      const bool is_new =
          index_.try_emplace(key, static_cast<uint32_t>(visits_.size())).second;
      if (!is_new) continue;
      visits_.push_back({key, at, step.name});
      if (const auto fault = Fault(step.to); fault.has_value())
        return WayTo(static_cast<uint32_t>(visits_.size()) - 1, *fault);
    }
  }
  return std::nullopt;
}

std::optional<std::string> Explorer::Trap() const {
  // Backwards from all states at rest.
  std::vector<std::vector<uint32_t>> before(visits_.size());
  std::vector<bool> ends(visits_.size());
  std::vector<uint32_t> todo;
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    const State from = Decode(visits_[at].key);
    for (const Step& step : Steps(world_, rules_, from)) {
      if (!step.fault && !step.fresh)
        before[index_.at(Encode(step.to))].push_back(at);
    }
    ends[at] = IsAtRest(from);
    if (ends[at]) todo.push_back(at);
  }
  while (!todo.empty()) {
    const uint32_t at = todo.back();
    todo.pop_back();
    for (const uint32_t earlier : before[at]) {
      if (ends[earlier]) continue;
      ends[earlier] = true;
      todo.push_back(earlier);
    }
  }
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    if (!ends[at]) return WayTo(at, "stuck");
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
    absl::StrAppend(&text, visits_[visit].step, "\n  ",
                    Decode(visits_[visit].key).Describe(), "\n");
  }
  return absl::StrCat(text, what);
}

}  // namespace gmb::keeper::model
