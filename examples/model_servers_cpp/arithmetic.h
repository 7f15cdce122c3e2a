#ifndef MODEL_SERVERS_ARITHMETIC_H_
#define MODEL_SERVERS_ARITHMETIC_H_

#include <cstdint>

#ifdef __CUDACC__
#define MODEL_SERVERS_HOST_AND_GPU __host__ __device__
#else
#define MODEL_SERVERS_HOST_AND_GPU
#endif

namespace model_servers {

// Arithmetic that host and GPU do alike: on whole numbers, so that sums are the
// same to the bit on either of them, and in any order.

MODEL_SERVERS_HOST_AND_GPU inline uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
  return x ^ (x >> 31);
}

MODEL_SERVERS_HOST_AND_GPU inline uint64_t WeightAt(uint64_t seed,
                                                    uint64_t index) {
  return Mix(seed + index);
}

// Depends on the row alone, so that a batch's sum is the sum of its rows'.
MODEL_SERVERS_HOST_AND_GPU inline uint64_t InputAt(uint64_t row,
                                                   uint64_t index) {
  return Mix(((row + 1) << 40) ^ index);
}

// One layer over the rows of a batch. Sizes are words of 8 bytes, above 0.
struct LayerCall {
  const uint64_t* in = nullptr;
  uint64_t in_words = 0;  // of a row
  const uint64_t* weights = nullptr;
  uint64_t weight_words = 0;
  uint64_t* out = nullptr;
  uint64_t out_words = 0;  // of a row
  uint64_t rows = 0;
};

// A word of a row's output. The words of a row together read every weight.
MODEL_SERVERS_HOST_AND_GPU inline uint64_t OutputAt(const LayerCall& call,
                                                    uint64_t row,
                                                    uint64_t index) {
  uint64_t sum = call.in[row * call.in_words + index % call.in_words];
  for (uint64_t w = index % call.weight_words; w < call.weight_words;
       w += call.out_words) {
    sum = sum * 0x9E3779B97F4A7C15 + call.weights[w];
  }
  return sum ^ (sum >> 29);
}

}  // namespace model_servers

#endif  // MODEL_SERVERS_ARITHMETIC_H_
