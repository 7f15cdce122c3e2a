// Two sessions of a tenant that share a lease again and again: one writes and
// seals it, the other attaches, both look at every byte whenever they are in a
// scope, and leave it in either order. Now and then it is kept by nobody.
//
//   sharing_tenant SOCKET_DIR TAG SEED ROUNDS BYTES
//
// BYTES have to be guaranteed to the tenant: no call may be refused. Ends with
// 0 and "rounds=N"; with 4 and what it found in memory; or with 5 and an error.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "gmb/client.h"
#include "tests/component/contents.h"

namespace {

using gmb::component::CountWords;
using gmb::component::Word;
using gmb::component::Words;

constexpr int kWrong = 4;
constexpr int kTold = 5;
constexpr absl::Duration kPromised = absl::Seconds(30);
constexpr char kName[] = "model";

bool IsWell(const char* what, const absl::Status& status) {
  if (status.ok()) return true;
  std::fprintf(stderr, "%s: %s\n", what, status.ToString().c_str());
  return false;
}

std::unique_ptr<gmb::Client> Connect(const char* socket_dir) {
  gmb::ClientOptions options;
  options.socket_dir = socket_dir;
  auto client = gmb::Client::Connect(options);
  if (!IsWell("Connect", client.status())) return nullptr;
  gmb::GateOptions gate;
  gate.park_after = absl::ZeroDuration();
  if (!IsWell("TurnGateOn", (*client)->TurnGateOn(gate))) return nullptr;
  return *std::move(client);
}

class Sharing {
 public:
  Sharing(gmb::Client* writer, gmb::Client* reader, uint64_t tag,
          uint64_t random, uint64_t bytes)
      : writer_(writer),
        reader_(reader),
        tag_(tag),
        random_(random),
        bytes_(bytes) {}

  // Of one that has not gone on.
  [[nodiscard]] int exit_code() const { return found_ ? kWrong : kTold; }

  bool Round() {
    seed_ = random_();
    const bool keep = random_() % 3 == 0;
    gmb::Lease first;
    gmb::Lease second;
    if (!Fill(keep, &first) || !Attach(&second)) return false;
    for (uint64_t looks = 1 + random_() % 4; looks > 0; --looks) {
      if (!Look(writer_, first) || !Look(reader_, second)) return false;
    }
    if (random_() % 2 == 0) std::swap(first, second);
    if (!Release(&first)) return false;
    if (!Release(&second)) return false;
    return !keep || Return();
  }

 private:
  bool Fill(bool keep, gmb::Lease* lease) {
    gmb::AcquireOptions options;
    options.wait = kPromised;
    options.keep = keep;
    auto shared = writer_->AttachOrFill(
        kName, bytes_, options, [this](gmb::Lease& filled) {
          uint64_t* const words = Words(filled);
          const uint64_t count = CountWords(filled);
          for (uint64_t i = 0; i < count; ++i) words[i] = Word(tag_, seed_, i);
          return absl::OkStatus();
        });
    if (!IsWell("AttachOrFill", shared.status())) return false;
    if (!shared->filled) {
      std::fprintf(stderr, "somebody else has filled it\n");
      return false;
    }
    *lease = std::move(shared->lease);
    return true;
  }

  bool Attach(gmb::Lease* lease) {
    gmb::AttachOptions options;
    options.wait = kPromised;
    auto attached = reader_->Attach(kName, options);
    if (!IsWell("Attach", attached.status())) return false;
    *lease = *std::move(attached);
    return true;
  }

  bool Look(gmb::Client* client, const gmb::Lease& lease) {
    const auto scope = client->Enter(kPromised);
    if (!IsWell("Enter", scope.status())) return false;
    const uint64_t* const words = Words(lease);
    const uint64_t count = CountWords(lease);
    for (uint64_t i = 0; i < count; ++i) {
      if (words[i] == Word(tag_, seed_, i)) continue;
      std::fprintf(stderr, "%016lx at word %lu of %lu is not %016lx\n",
                   words[i], i, count, Word(tag_, seed_, i));
      found_ = true;
      return false;
    }
    return true;
  }

  bool Release(gmb::Lease* lease) {
    return IsWell("Release", std::move(*lease).Release());
  }

  // To a lease that no session has.
  bool Return() {
    gmb::Lease lease;
    return Attach(&lease) && Look(reader_, lease) &&
           IsWell("Drop", reader_->Drop(kName)) && Release(&lease);
  }

  gmb::Client* const writer_;
  gmb::Client* const reader_;
  const uint64_t tag_;
  std::mt19937_64 random_;
  const uint64_t bytes_;
  uint64_t seed_ = 0;
  bool found_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  const auto writer = Connect(argv[1]);
  const auto reader = Connect(argv[1]);
  if (writer == nullptr || reader == nullptr) return 3;
  Sharing sharing(
      writer.get(), reader.get(), std::strtoull(argv[2], nullptr, 10),
      std::strtoull(argv[3], nullptr, 10), std::strtoull(argv[5], nullptr, 10));
  const int rounds = std::atoi(argv[4]);
  for (int i = 0; i < rounds; ++i) {
    if (!sharing.Round()) return sharing.exit_code();
  }
  std::printf("rounds=%d\n", rounds);
  return 0;
}
