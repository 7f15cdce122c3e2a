#include "bench/reclaim/figures.h"

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "bench/quantile.h"

namespace gmb::bench {
namespace {

double Median(const std::vector<double>& values) {
  return Quantile(values, 0.5);
}

}  // namespace

Figures::Section& Figures::At(const std::string& name) {
  for (Section& section : sections_) {
    if (section.name == name) return section;
  }
  sections_.push_back({name, {}, {}});
  return sections_.back();
}

void Figures::Add(const std::string& section, const std::string& name,
                  double value, const Meaning& meaning) {
  Section& in = At(section);
  for (Figure& figure : in.figures) {
    if (figure.name != name) continue;
    figure.values.push_back(value);
    return;
  }
  in.figures.push_back({name, meaning, {value}});
}

void Figures::Say(const std::string& section, const std::string& sentence) {
  At(section).sentences.push_back(sentence);
}

double Figures::PercentOfPeer(const Section& section, const Figure& figure) {
  for (const Figure& peer : section.figures) {
    if (peer.name != figure.meaning.beside) continue;
    const double theirs = Median(peer.values);
    return theirs > 0 ? 100 * Median(figure.values) / theirs : 0;
  }
  return 0;
}

std::string Figures::Judgement(const Section& section,
                               const Figure& figure) const {
  const Goal& goal = figure.meaning.goal;
  const bool relative = goal.at_least_percent_of_peer > 0;
  if (!judged_ || (!relative && goal.at_most <= 0)) return "";
  const bool reached =
      relative ? PercentOfPeer(section, figure) >= goal.at_least_percent_of_peer
               : Median(figure.values) <= goal.at_most;
  return relative ? absl::StrFormat("goal >= %g %%: %s",
                                    goal.at_least_percent_of_peer,
                                    reached ? "reached" : "missed")
                  : absl::StrFormat("goal <= %g %s: %s", goal.at_most,
                                    figure.meaning.unit,
                                    reached ? "reached" : "missed");
}

void Figures::Print() const {
  for (const Section& section : sections_) {
    std::printf("\n%s\n", section.name.c_str());
    if (!section.figures.empty()) {
      std::printf("  %-50s %9s %9s %9s %4s\n", "", "median", "p10", "p90", "n");
    }
    for (const Figure& figure : section.figures) {
      const std::string name =
          absl::StrCat(figure.name, ", ", figure.meaning.unit);
      std::printf("  %-50s %9.2f %9.2f %9.2f %4zu", name.c_str(),
                  Median(figure.values), Quantile(figure.values, 0.1),
                  Quantile(figure.values, 0.9), figure.values.size());
      if (const double percent = PercentOfPeer(section, figure); percent > 0) {
        const bool rate = figure.meaning.unit == std::string("GB/s");
        std::printf(rate ? "  %.1f %% of %s" : "  %.2f x %s",
                    rate ? percent : percent / 100,
                    figure.meaning.beside.c_str());
      }
      const std::string judgement = Judgement(section, figure);
      std::printf("%s%s\n", judgement.empty() ? "" : "  ", judgement.c_str());
    }
    for (const std::string& sentence : section.sentences) {
      std::printf("  %s\n", sentence.c_str());
    }
  }
  std::fflush(stdout);
}

std::string Figures::Json() const {
  std::string json;
  for (const Section& section : sections_) {
    for (const Figure& figure : section.figures) {
      absl::StrAppend(&json, json.empty() ? "" : ",\n", "    {\"section\": \"",
                      section.name, "\", \"figure\": \"", figure.name,
                      "\", \"unit\": \"", figure.meaning.unit,
                      "\", \"median\": ", Median(figure.values),
                      ", \"p10\": ", Quantile(figure.values, 0.1),
                      ", \"p90\": ", Quantile(figure.values, 0.9),
                      ", \"n\": ", figure.values.size());
      if (const double percent = PercentOfPeer(section, figure); percent > 0) {
        absl::StrAppend(&json, ", \"beside\": \"", figure.meaning.beside,
                        "\", \"percent_of_it\": ", percent);
      }
      absl::StrAppend(&json, "}");
    }
  }
  return json;
}

}  // namespace gmb::bench
