// Why leases stay where they are, in words.
#include "broker/machine/verdict_sentences.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

constexpr size_t kMostSentences = 16;

}  // namespace

std::vector<std::string> VerdictSentences(const VerdictSums& sums) {
  std::vector<std::pair<uint64_t, std::string>> sentences;
  sentences.reserve(sums.size());
  for (const auto& [verdict, sum] : sums) {
    if (verdict == quota::Verdict::kTaken ||
        verdict == quota::Verdict::kEvicted) {
      continue;
    }
    sentences.emplace_back(
        sum.bytes,
        absl::StrCat(sum.leases, sum.leases == 1 ? " lease" : " leases", " of ",
                     proto::FormatBytes(sum.bytes), ": ",
                     quota::VerdictText(verdict)));
  }
  std::sort(sentences.rbegin(), sentences.rend());
  if (sentences.size() > kMostSentences) sentences.resize(kMostSentences);
  std::vector<std::string> texts;
  texts.reserve(sentences.size());
  for (auto& [bytes, text] : sentences) texts.push_back(std::move(text));
  return texts;
}

}  // namespace gmb::broker
