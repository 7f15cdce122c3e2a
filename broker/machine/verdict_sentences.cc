// Why leases stay where they are, in words.
#include "broker/machine/verdict_sentences.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/amount_text.h"

namespace gmb::broker {
namespace {

constexpr size_t kMostSentences = 16;

}  // namespace

std::vector<std::string> VerdictSentences(
    const State& state, const std::vector<quota::LeaseVerdict>& why,
    std::optional<quota::TenantId> tenant) {
  std::map<quota::Verdict, std::pair<uint64_t, uint64_t>> stayed;
  for (const quota::LeaseVerdict& verdict : why) {
    const auto lease = state.leases->find(verdict.lease);
    const bool meant =
        lease != state.leases->end() &&
        (!tenant.has_value() || lease->second->tenant == *tenant);
    if (!meant || verdict.verdict == quota::Verdict::kTaken ||
        verdict.verdict == quota::Verdict::kEvicted) {
      continue;
    }
    auto& [leases, bytes] = stayed[verdict.verdict];
    ++leases;
    bytes += lease->second->bytes;
  }
  std::vector<std::pair<uint64_t, std::string>> sentences;
  sentences.reserve(stayed.size());
  for (const auto& [verdict, sums] : stayed) {
    sentences.emplace_back(
        sums.second,
        absl::StrCat(sums.first, sums.first == 1 ? " lease" : " leases", " of ",
                     proto::FormatBytes(sums.second), ": ",
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
