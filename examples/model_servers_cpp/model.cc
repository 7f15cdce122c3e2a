#include "model.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace model_servers {
namespace {

constexpr uint64_t kLeastUnit = uint64_t{4} << 10;
constexpr uint64_t kMostUnit = uint64_t{1} << 30;

}  // namespace

std::vector<std::string> Model::Names() {
  return {"classifier", "writer", "search"};
}

absl::StatusOr<Model> Model::Find(const std::string& name,
                                  uint64_t unit_bytes) {
  if (unit_bytes % sizeof(uint64_t) != 0 || unit_bytes < kLeastUnit ||
      unit_bytes > kMostUnit) {
    return absl::InvalidArgumentError(
        absl::StrCat("a unit is a multiple of 8 bytes, at least ", kLeastUnit,
                     " and at most ", kMostUnit, ", not ", unit_bytes));
  }
  const uint64_t unit_words = unit_bytes / sizeof(uint64_t);
  if (name == "classifier") return Classifier(unit_words);
  if (name == "writer") return Writer(unit_words);
  if (name == "search") return Search(unit_words);
  return absl::NotFoundError(absl::StrCat("there is no model \"", name,
                                          "\"; there are ",
                                          absl::StrJoin(Names(), ", ")));
}

// 96 units of weights, 30 a row.
Model Model::Classifier(uint64_t unit_words) {
  Model model("classifier", 0xC1A5, 6 * unit_words);
  size_t buffer = 1;
  const uint64_t shape[][2] = {{8, 16}, {16, 8}, {16, 8}, {24, 4}, {32, 1}};
  for (const auto& [weights, out] : shape) {
    model.layers_.push_back({weights * unit_words, out * unit_words, buffer});
    buffer = 3 - buffer;
  }
  return model;
}

// 128 units of weights, 34 a row.
Model Model::Writer(uint64_t unit_words) {
  Model model("writer", 0x3712, 2 * unit_words);
  for (size_t layer = 0; layer < 8; ++layer) {
    model.layers_.push_back({16 * unit_words, 4 * unit_words, layer + 1});
  }
  return model;
}

// 128 units of weights, 27 a row.
Model Model::Search(uint64_t unit_words) {
  Model model("search", 0x5EA2, unit_words);
  model.layers_.push_back({120 * unit_words, 24 * unit_words, 1});
  model.layers_.push_back({8 * unit_words, 2 * unit_words, 2});
  return model;
}

uint64_t Model::weight_words() const {
  uint64_t words = 0;
  for (const Layer& layer : layers_) words += layer.weight_words;
  return words;
}

std::vector<uint64_t> Model::Plan(uint64_t rows) const {
  std::vector<uint64_t> words = {input_words_};
  for (const Layer& layer : layers_) {
    words.resize(std::max(words.size(), layer.buffer + 1));
    words[layer.buffer] = std::max(words[layer.buffer], layer.out_words);
  }
  std::vector<uint64_t> bytes;
  bytes.reserve(words.size() + 1);
  for (const uint64_t row : words) {
    bytes.push_back(row * rows * sizeof(uint64_t));
  }
  bytes.push_back(sizeof(uint64_t));  // the sum
  return bytes;
}

absl::StatusOr<uint64_t> Model::Run(Compute& compute, const uint64_t* weights,
                                    uint64_t rows,
                                    absl::Span<uint64_t* const> buffers) const {
  absl::Status status = compute.MakeInput(buffers[0], input_words_, rows);
  LayerCall call;
  call.in = buffers[0];
  call.in_words = input_words_;
  call.weights = weights;
  call.rows = rows;
  for (const Layer& layer : layers_) {
    if (!status.ok()) return status;
    call.out = buffers[layer.buffer];
    call.out_words = layer.out_words;
    call.weight_words = layer.weight_words;
    status = compute.RunLayer(call);
    call.in = call.out;
    call.in_words = call.out_words;
    call.weights += layer.weight_words;
  }
  if (!status.ok()) return status;
  return compute.Sum(call.in, call.in_words * rows, buffers.back());
}

}  // namespace model_servers
