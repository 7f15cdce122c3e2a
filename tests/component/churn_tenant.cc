// One process of a tenant: leases and releases at random, and looks at every
// byte.
//
//   churn_tenant SOCKET_DIR TAG SEED ROUNDS
//
// All it writes carries its tag. Its leases must hold zeros or its own tag, and
// stay as written. Ends with 0 and "rounds=N granted=M", or with 4
// and what it found.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmb/client.h"
#include "tests/component/contents.h"

namespace {

using gmb::component::CountWords;
using gmb::component::TagOf;
using gmb::component::Word;
using gmb::component::Words;

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr int kWrong = 4;

struct Held {
  gmb::Lease lease;
  uint64_t seed;
};

class Churn {
 public:
  Churn(gmb::Client* client, uint64_t tag, uint64_t seed)
      : client_(client), tag_(tag), random_(seed) {}

  bool Round() {
    const bool take = held_.empty() || (held_.size() < 6 && random_() % 2 == 0);
    return take ? Take() : Give();
  }
  bool Finish() {
    while (!held_.empty()) {
      if (!Give()) return false;
    }
    return true;
  }
  [[nodiscard]] uint64_t granted() const { return granted_; }

 private:
  bool Take() {
    gmb::AcquireOptions options;
    options.wait = absl::Milliseconds(random_() % 20);
    auto lease = client_->Acquire(1 + random_() % (24 * kMiB), options);
    if (!lease.ok()) {
      const bool refused = absl::IsResourceExhausted(lease.status()) ||
                           absl::IsFailedPrecondition(lease.status());
      if (!refused)
        std::fprintf(stderr, "%s\n", lease.status().ToString().c_str());
      return refused;
    }
    ++granted_;
    Held held{*std::move(lease), random_()};
    uint64_t* const words = Words(held.lease);
    const uint64_t count = CountWords(held.lease);
    for (uint64_t i = 0; i < count; ++i) {
      if (words[i] != 0 && TagOf(words[i]) != tag_) {
        std::fprintf(stderr, "another's word: %016lx at %lu\n", words[i], i);
        return false;
      }
      words[i] = Word(tag_, held.seed, i);
    }
    held_.push_back(std::move(held));
    return true;
  }

  bool Give() {
    std::swap(held_[random_() % held_.size()], held_.back());
    Held held = std::move(held_.back());
    held_.pop_back();
    const uint64_t* const words = Words(held.lease);
    const uint64_t count = CountWords(held.lease);
    for (uint64_t i = 0; i < count; ++i) {
      if (words[i] != Word(tag_, held.seed, i)) {
        std::fprintf(stderr, "not as written: %016lx at %lu\n", words[i], i);
        return false;
      }
    }
    const absl::Status released = std::move(held.lease).Release();
    if (!released.ok())
      std::fprintf(stderr, "%s\n", released.ToString().c_str());
    return released.ok();
  }

  gmb::Client* const client_;
  const uint64_t tag_;
  std::mt19937_64 random_;
  std::vector<Held> held_;
  uint64_t granted_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  gmb::ClientOptions options;
  options.socket_dir = argv[1];
  const auto client = gmb::Client::Connect(options);
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 3;
  }
  Churn churn(client->get(), std::strtoull(argv[2], nullptr, 10),
              std::strtoull(argv[3], nullptr, 10));
  const int rounds = std::atoi(argv[4]);
  for (int i = 0; i < rounds; ++i) {
    if (!churn.Round()) return kWrong;
  }
  if (!churn.Finish()) return kWrong;
  std::printf("rounds=%d granted=%lu\n", rounds, churn.granted());
  return 0;
}
