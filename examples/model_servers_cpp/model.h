#ifndef MODEL_SERVERS_MODEL_H_
#define MODEL_SERVERS_MODEL_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compute.h"

namespace model_servers {

// Three models that need memory in different ways. Each is a chain of layers
// over whole numbers.
//   classifier  a pyramid: its activations shrink, two buffers take turns
//   writer      keeps the output of every layer, as a decoder its keys and
//               values
//   search      a large table of weights, and a score for each of its parts
class Model {
 public:
  // All sizes are multiples of the unit: what is 256 KiB on the host may be
  // 8 MiB on a GPU. NOT_FOUND for another name; INVALID_ARGUMENT for a unit
  // that is no multiple of 8 or not within [4 KiB, 1 GiB].
  [[nodiscard]] static absl::StatusOr<Model> Find(const std::string& name,
                                                  uint64_t unit_bytes);
  [[nodiscard]] static std::vector<std::string> Names();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] uint64_t weight_words() const;
  [[nodiscard]] uint64_t weight_seed() const { return seed_; }

  // How many rows Plan can be asked for.
  static constexpr uint64_t kMostRows = 4096;
  // The buffers that a batch needs, in bytes. Rows are 1 to kMostRows.
  [[nodiscard]] std::vector<uint64_t> Plan(uint64_t rows) const;
  // The sum over the last layer's output. `buffers` are as planned; all memory
  // is the compute's.
  [[nodiscard]] absl::StatusOr<uint64_t> Run(
      Compute& compute, const uint64_t* weights, uint64_t rows,
      absl::Span<uint64_t* const> buffers) const;

 private:
  struct Layer {
    uint64_t weight_words;
    uint64_t out_words;  // of a row
    size_t buffer;       // that its output goes to; 0 holds the input
  };
  Model(std::string name, uint64_t seed, uint64_t input_words)
      : name_(std::move(name)), seed_(seed), input_words_(input_words) {}
  static Model Classifier(uint64_t unit_words);
  static Model Writer(uint64_t unit_words);
  static Model Search(uint64_t unit_words);

  std::string name_;
  uint64_t seed_;
  uint64_t input_words_;
  std::vector<Layer> layers_;
};

}  // namespace model_servers

#endif  // MODEL_SERVERS_MODEL_H_
