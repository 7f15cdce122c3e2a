#include "tests/client/gate/gate_explorer.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace gmb::internal::model {

std::optional<std::string> Explorer::Reach() {
  const uint64_t start = Encode(State{});
  visits_.push_back({start, 0, "a new gate"});
  index_.emplace(start, 0);
  for (uint32_t at = 0; at < visits_.size(); ++at) {
    const State from = Decode(visits_[at].key);
    for (const Step& step : Steps(rules_, from)) {
      ++steps_;
      const uint64_t key = Encode(step.to);
      const auto [found, inserted] =
          index_.try_emplace(key, static_cast<uint32_t>(visits_.size()));
      if (inserted) visits_.push_back({key, at, step.name});
      std::optional<std::string> fault = Fault(from, step);
      if (!fault && inserted) fault = Fault(rules_, step.to);
      if (fault) {
        return WayTo(at, absl::StrCat(step.name, ": ", *fault, "\n  ",
                                      step.to.Describe()));
      }
    }
  }
  return std::nullopt;
}

std::vector<uint32_t> Explorer::Successors(uint32_t at,
                                           const Follow& follow) const {
  std::vector<uint32_t> next;
  for (const Step& step : Steps(rules_, Decode(visits_[at].key))) {
    if (!follow(step)) continue;
    const uint32_t to = index_.at(Encode(step.to));
    if (to != at) next.push_back(to);  // what changes nothing is no step
  }
  return next;
}

std::optional<std::string> Explorer::AllEnd(const Follow& follow,
                                            const Good& good) {
  struct Frame {
    uint32_t at;
    std::vector<uint32_t> next;
  };
  std::vector<Mark> marks(visits_.size(), Mark::kNew);
  std::vector<Frame> path;
  for (uint32_t start = 0; start < visits_.size(); ++start) {
    if (marks[start] != Mark::kNew) continue;
    marks[start] = Mark::kOpen;
    path.push_back({start, Successors(start, follow)});
    if (path.back().next.empty() && !good(Decode(visits_[start].key))) {
      return WayTo(start, "stuck");
    }
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.next.empty()) {
        marks[frame.at] = Mark::kDone;
        path.pop_back();
        continue;
      }
      const uint32_t to = frame.next.back();
      frame.next.pop_back();
      if (marks[to] == Mark::kOpen) return WayTo(to, "goes round for ever");
      if (marks[to] == Mark::kDone) continue;
      marks[to] = Mark::kOpen;
      path.push_back({to, Successors(to, follow)});
      if (path.back().next.empty() && !good(Decode(visits_[to].key))) {
        return WayTo(to, "stuck");
      }
    }
  }
  return std::nullopt;
}

bool Explorer::Any(const Good& is) const {
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

}  // namespace gmb::internal::model
