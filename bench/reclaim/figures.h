#ifndef GMB_BENCH_RECLAIM_FIGURES_H_
#define GMB_BENCH_RECLAIM_FIGURES_H_

#include <string>
#include <utility>
#include <vector>

namespace gmb::bench {

// The goal of a figure; none unless one of the two is set.
struct Goal {
  double at_most = 0;                   // in the figure's own unit
  double at_least_percent_of_peer = 0;  // median by median
};

// The words about a figure beside its values.
struct Meaning {
  const char* unit;    // "ms", "GB/s", "%"
  std::string beside;  // a figure of the same section; empty: none
  Goal goal = {};
};

// Values of figures, round by round, and a table of them. Not thread-safe.
class Figures {
 public:
  // `judged`: whether goals say anything on this device.
  explicit Figures(bool judged) : judged_(judged) {}

  // The first one of a name says what it means.
  void Add(const std::string& section, const std::string& name, double value,
           const Meaning& meaning);
  // A sentence that stands in a section, for what was not measured.
  void Say(const std::string& section, const std::string& sentence);

  // Medians, p10, p90 and the peers.
  void Print() const;
  // The rows of a JSON list.
  [[nodiscard]] std::string Json() const;

 private:
  struct Figure {
    std::string name;
    Meaning meaning;
    std::vector<double> values;
  };
  struct Section {
    std::string name;
    std::vector<Figure> figures;
    std::vector<std::string> sentences;
  };

  Section& At(const std::string& name);
  // Of medians; 0 without a peer.
  [[nodiscard]] static double PercentOfPeer(const Section& section,
                                            const Figure& figure);
  [[nodiscard]] std::string Judgement(const Section& section,
                                      const Figure& figure) const;

  const bool judged_;
  std::vector<Section> sections_;  // in the order of their first appearance
};

}  // namespace gmb::bench

#endif  // GMB_BENCH_RECLAIM_FIGURES_H_
