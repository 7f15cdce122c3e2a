// One process of a tenant that lends: acquires, works in scopes, idles, seals
// and releases at random, and looks at every byte.
//
//   reclaim_tenant SOCKET_DIR TAG SEED STEPS GUARANTEE_BYTES
//
// All it writes carries its tag. Kept contents must be as written and at the
// same address; new memory, and what may be lost, must be zero or carry its
// tag. A request within GUARANTEE_BYTES must not be denied. Ends with 0 and a
// line of counts; with 4 and what it found in memory; or with 5 and an error
// that it should not have been told.
#include <algorithm>
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
constexpr int kTold = 5;
constexpr size_t kMostLeases = 6;
constexpr uint64_t kMostLeaseBytes = 10 * kMiB;
// Longer than all that others may do before they answer; short of the test's
// patience.
constexpr absl::Duration kPromised = absl::Seconds(30);

struct Held {
  gmb::Lease lease;
  gmb::Contents contents;
  void* address;
  uint64_t seed = 0;
  bool written = false;
  bool sealed = false;
};

struct Counts {
  int granted = 0;
  int refused = 0;
  int worked = 0;
  int kept_out = 0;
  int away = 0;
};

gmb::GateOptions ParkAfter(absl::Duration idle) {
  gmb::GateOptions options;
  options.park_after = idle;
  return options;
}

// A broker's answer to who asks for more than there is.
bool IsRefusal(const absl::Status& status) {
  return absl::IsResourceExhausted(status) ||
         absl::IsFailedPrecondition(status);
}

class Tenant {
 public:
  Tenant(gmb::Client* client, uint64_t tag, uint64_t seed,
         uint64_t guarantee_bytes)
      : client_(client),
        tag_(tag),
        random_(seed),
        guarantee_bytes_(guarantee_bytes) {}

  bool Step();
  bool Finish();
  [[nodiscard]] const Counts& counts() const { return counts_; }
  // Of one that has not gone on.
  [[nodiscard]] int exit_code() const { return told_ ? kTold : kWrong; }

 private:
  bool Take();
  bool Give();
  bool Work();
  bool Grow();
  bool Idle();
  bool SealOne();
  bool SwitchGate();
  bool Enter(gmb::Scope* scope, bool* in);
  bool Check(const Held& held) const;
  void Write(Held* held);
  bool Wrong(const std::string& what, const absl::Status& status);

  [[nodiscard]] uint64_t HeldBytes() const {
    uint64_t bytes = 0;
    for (const Held& held : held_) bytes += held.lease.size_bytes();
    return bytes;
  }

  gmb::Client* const client_;
  const uint64_t tag_;
  std::mt19937_64 random_;
  const uint64_t guarantee_bytes_;
  std::vector<Held> held_;
  bool gate_on_ = true;
  bool told_ = false;
  Counts counts_;
};

bool Tenant::Wrong(const std::string& what, const absl::Status& status) {
  told_ = true;
  std::fprintf(stderr, "%s: held=%lu guarantee=%lu: %s\n", what.c_str(),
               HeldBytes(), guarantee_bytes_, status.ToString().c_str());
  return false;
}

bool Tenant::Step() {
  if (held_.empty()) return Take();
  const uint64_t dice = random_() % 100;
  if (dice < 22) return held_.size() < kMostLeases ? Take() : Give();
  if (dice < 40) return Give();
  if (dice < 75) return Work();
  if (dice < 93) return Idle();
  if (dice < 97) return SealOne();
  return SwitchGate();
}

// In a scope, or kept out as one may be who holds more than is guaranteed.
bool Tenant::Enter(gmb::Scope* scope, bool* in) {
  const bool promised = HeldBytes() <= guarantee_bytes_;
  const absl::Duration wait =
      promised ? kPromised : absl::Milliseconds(random_() % 2000);
  auto entered = client_->Enter(wait);
  *in = entered.ok();
  if (*in) {
    *scope = *std::move(entered);
    return true;
  }
  ++counts_.kept_out;
  const bool refusal =
      IsRefusal(entered.status()) || absl::IsDeadlineExceeded(entered.status());
  if (promised || !refusal)
    return Wrong("kept out of a scope", entered.status());
  return true;
}

bool Tenant::Check(const Held& held) const {
  if (held.lease.data() != held.address) {
    std::fprintf(stderr, "lease %lu has moved\n", held.lease.id());
    return false;
  }
  const uint64_t* const words = Words(held.lease);
  const uint64_t count = CountWords(held.lease);
  for (uint64_t i = 0; i < count; ++i) {
    if (held.written && words[i] == Word(tag_, held.seed, i)) continue;
    // New slabs are zero, or were this tenant's before.
    const bool lost = !held.written || held.contents == gmb::Contents::kDiscard;
    if (lost && (words[i] == 0 || TagOf(words[i]) == tag_)) continue;
    std::fprintf(stderr,
                 "lease %lu (contents %d, written %d, sealed %d): %016lx at "
                 "word %lu of %lu is not %016lx\n",
                 held.lease.id(), static_cast<int>(held.contents),
                 static_cast<int>(held.written), static_cast<int>(held.sealed),
                 words[i], i, count, Word(tag_, held.seed, i));
    return false;
  }
  return true;
}

void Tenant::Write(Held* held) {
  held->seed = random_();
  held->written = true;
  uint64_t* const words = Words(held->lease);
  const uint64_t count = CountWords(held->lease);
  for (uint64_t i = 0; i < count; ++i) words[i] = Word(tag_, held->seed, i);
}

bool Tenant::Take() {
  const uint64_t bytes = 1 + random_() % kMostLeaseBytes;
  const uint64_t rounded = (bytes + 2 * kMiB - 1) / (2 * kMiB) * (2 * kMiB);
  const bool promised = HeldBytes() + rounded <= guarantee_bytes_;
  gmb::AcquireOptions options;
  options.wait = promised ? kPromised : absl::Milliseconds(random_() % 300);
  const uint64_t dice = random_() % 10;
  options.contents = dice < 6   ? gmb::Contents::kPreserve
                     : dice < 9 ? gmb::Contents::kDiscard
                                : gmb::Contents::kResident;
  auto lease = client_->Acquire(bytes, options);
  if (!lease.ok()) {
    ++counts_.refused;
    if (promised || !IsRefusal(lease.status()))
      return Wrong("an acquire of " + std::to_string(rounded), lease.status());
    return held_.empty() || Give();
  }
  ++counts_.granted;
  void* const address = lease->data();
  held_.push_back({*std::move(lease), options.contents, address});
  if (random_() % 4 == 0) return true;  // may be taken before it is written
  return Work();
}

bool Tenant::Give() {
  std::swap(held_[random_() % held_.size()], held_.back());
  if (random_() % 2 == 0 && !Work()) return false;
  Held held = std::move(held_.back());
  held_.pop_back();
  const absl::Status released = std::move(held.lease).Release();
  return released.ok() || Wrong("a release", released);
}

bool Tenant::Work() {
  gmb::Scope scope;
  bool in = false;
  if (!Enter(&scope, &in)) return false;
  if (!in) {
    if (held_.size() < 2) return true;
    Held held = std::move(held_.front());
    held_.erase(held_.begin());
    const absl::Status released = std::move(held.lease).Release();
    return released.ok() || Wrong("a release", released);
  }
  ++counts_.worked;
  for (Held& held : held_) {
    if (!Check(held)) return false;
    // Whether it was lost is not to be found out twice.
    const bool lost = held.contents == gmb::Contents::kDiscard;
    if (!held.sealed && (lost || !held.written || random_() % 3 == 0))
      Write(&held);
  }
  if (random_() % 8 != 0) return true;
  return random_() % 2 == 0 ? Idle() : Grow();
}

// Within a scope: whoever waits for its end must not be waited for.
bool Tenant::Grow() {
  if (held_.size() >= kMostLeases) return true;
  gmb::AcquireOptions options;
  options.wait = absl::Milliseconds(random_() % 100);
  auto lease = client_->Acquire(1 + random_() % kMostLeaseBytes, options);
  if (!lease.ok()) {
    ++counts_.refused;
    return IsRefusal(lease.status()) || Wrong("a growth", lease.status());
  }
  ++counts_.granted;
  void* const address = lease->data();
  held_.push_back({*std::move(lease), options.contents, address});
  Write(&held_.back());
  return true;
}

// Asks again and again for nothing, until something of its tenant's is away.
bool Tenant::Idle() {
  const uint64_t most = 1 + random_() % 150;
  for (uint64_t i = 0; i < most; ++i) {
    const auto quotas = client_->GetQuota();
    if (!quotas.ok()) return Wrong("GetQuota", quotas.status());
    if (quotas->front().evicted_bytes == 0) continue;
    ++counts_.away;
    return true;
  }
  return true;
}

bool Tenant::SealOne() {
  Held& held = held_[random_() % held_.size()];
  if (held.contents != gmb::Contents::kPreserve || !held.written) return true;
  const absl::Status sealed = held.lease.Seal();
  if (!sealed.ok()) return Wrong("Seal", sealed);
  held.sealed = true;
  return true;
}

bool Tenant::SwitchGate() {
  if (gate_on_) {
    const absl::Status off = client_->TurnGateOff(absl::Seconds(2));
    if (off.ok()) {
      gate_on_ = false;
      return Work();
    }
    const bool refusal = IsRefusal(off) || absl::IsDeadlineExceeded(off);
    return refusal || Wrong("TurnGateOff", off);
  }
  const absl::Status on =
      client_->TurnGateOn(ParkAfter(absl::Milliseconds(random_() % 3)));
  gate_on_ = on.ok();
  return on.ok() || Wrong("TurnGateOn", on);
}

bool Tenant::Finish() {
  while (!held_.empty()) {
    if (!Give()) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) return 2;
  gmb::ClientOptions options;
  options.socket_dir = argv[1];
  auto client = gmb::Client::Connect(options);
  if (!client.ok()) {
    std::fprintf(stderr, "%s\n", client.status().ToString().c_str());
    return 3;
  }
  const uint64_t seed = std::strtoull(argv[3], nullptr, 10);
  const absl::Status on = (*client)->TurnGateOn(
      ParkAfter(absl::Milliseconds(static_cast<int64_t>(seed % 3))));
  if (!on.ok()) {
    std::fprintf(stderr, "%s\n", on.ToString().c_str());
    return 3;
  }
  Tenant tenant(client->get(), std::strtoull(argv[2], nullptr, 10), seed,
                std::strtoull(argv[5], nullptr, 10));
  const int steps = std::atoi(argv[4]);
  for (int i = 0; i < steps; ++i) {
    if (!tenant.Step()) return tenant.exit_code();
  }
  if (!tenant.Finish()) return tenant.exit_code();
  const Counts& counts = tenant.counts();
  std::printf("granted=%d refused=%d worked=%d kept_out=%d away=%d\n",
              counts.granted, counts.refused, counts.worked, counts.kept_out,
              counts.away);
  return 0;
}
