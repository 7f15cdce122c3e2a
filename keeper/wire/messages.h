#ifndef GMB_KEEPER_WIRE_MESSAGES_H_
#define GMB_KEEPER_WIRE_MESSAGES_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

// The bodies of frames. Each Decode answers INVALID_ARGUMENT to anything that
// its Encode would not have written, but for bounds that only the receiver has.
// Pure.
namespace gmb::keeper {

inline constexpr size_t kNonceBytes = 16;
inline constexpr size_t kKeeperIdBytes = 16;
inline constexpr size_t kMaxKeyBytes = 64;
inline constexpr size_t kMaxRecordBytes = 512;
inline constexpr size_t kMaxEntryFds = 8;
inline constexpr size_t kMaxTextBytes = 512;
// Names of journals begin so: the one thing that a command may look at.
inline constexpr absl::string_view kJournalKeys = "journal/";
// Of one page, so that one packet carries it (SCM_MAX_FD is 253).
inline constexpr size_t kMaxPageFds = 253;
inline constexpr size_t kMaxPageEntries = 32;

enum class Role : uint8_t { kBroker = 1, kCommand = 2, kSuccessor = 3 };

struct Hello {
  uint16_t oldest_version = 0;  // that the peer speaks
  uint16_t newest_version = 0;
  Role role{};
  // A broker's: it waits for the death of the last one, instead of being
  // refused.
  bool wait = false;
  std::string nonce;  // that of the Challenge
};

struct Welcome {
  uint16_t version = 0;   // that is spoken from now on
  std::string keeper_id;  // random; another keeper has another
  uint64_t entries = 0;   // that are kept
  uint64_t fds = 0;
};

// The things that are kept under a name: fds, and some bytes that say what they
// are.
struct EntryHead {
  // Grows with each Put. 0 in a Put.
  uint64_t order = 0;
  std::string key = {};
  std::string record = {};
  uint8_t fds = 0;
  // Which of the fds is the pidfd of a process for whose sake all this is kept.
  std::optional<uint8_t> peer = std::nullopt;
};

struct Page {
  std::vector<EntryHead> entries;  // their fds follow each other in the packet
  bool more = false;
};

struct KeeperStatus {
  enum class Broker : uint8_t {
    kNone = 0,    // none was served, or the last one was done
    kServed = 1,  // and connected
    kHungUp = 2,  // it lives, and nobody else is served until it has died
    kDead = 3,
  };

  int32_t pid = 0;  // the keeper's
  Broker broker{};
  int32_t broker_pid = 0;
  uint64_t entries = 0;
  uint64_t fds = 0;
  uint64_t max_entries = 0;
  uint64_t max_fds = 0;
  uint64_t living_peers = 0;
  // Until all is given back; nothing: it is not about to be.
  std::optional<uint64_t> gives_back_in_ms;
};

// The sums that a keeper can tell of it without knowing what it is.
struct KeptCount {
  uint64_t sessions = 0;         // entries that have a peer
  uint64_t living_sessions = 0;  // those whose peer lives
  uint64_t memory_bytes = 0;     // of memory files; device memory is none
};

// The things that a keeper leaves to the one that replaces it, beside the
// entries. Its fds, in this order: the locked directory, the listener, the
// broker's pidfd unless it is dead, and its connection if it has one.
struct Estate {
  std::string keeper_id;
  uint64_t entries = 0;
  uint64_t last_order = 0;
  uint64_t holders = 0;  // brokers that were served
  // Of the last one; kNone: there is none.
  KeeperStatus::Broker broker{};
  int32_t broker_pid = 0;
  // Ago, where they have died.
  uint64_t broker_died_ms = 0;
  uint64_t last_peer_died_ms = 0;

  [[nodiscard]] size_t fds() const {
    constexpr size_t kOfKeeper = 2;
    switch (broker) {
      case KeeperStatus::Broker::kServed:
        return kOfKeeper + 2;
      case KeeperStatus::Broker::kHungUp:
        return kOfKeeper + 1;
      case KeeperStatus::Broker::kNone:
      case KeeperStatus::Broker::kDead:
        break;
    }
    return kOfKeeper;
  }
};

// An error's code and message.
using Refusal = absl::Status;

[[nodiscard]] std::string Encode(const Hello& hello);
[[nodiscard]] std::string Encode(const Welcome& welcome);
[[nodiscard]] std::string Encode(const EntryHead& entry);  // with a checksum
[[nodiscard]] std::string Encode(const Page& page);
[[nodiscard]] std::string Encode(const KeeperStatus& status);
[[nodiscard]] std::string Encode(const KeptCount& count);
[[nodiscard]] std::string Encode(const Estate& estate);
[[nodiscard]] std::string EncodeRefusal(const Refusal& why);
// Of a Remove.
[[nodiscard]] std::string EncodeKey(absl::string_view key);
// Of a HandOver: a service manager listens to the one that asks.
[[nodiscard]] std::string EncodeHandOver(bool managed);
// Of a Fetch: those with a higher order.
[[nodiscard]] std::string EncodeAfter(uint64_t order);

[[nodiscard]] absl::StatusOr<Hello> DecodeHello(absl::string_view body);
[[nodiscard]] absl::StatusOr<Welcome> DecodeWelcome(absl::string_view body);
// DATA_LOSS where the checksum is another one.
[[nodiscard]] absl::StatusOr<EntryHead> DecodeEntry(absl::string_view body);
[[nodiscard]] absl::StatusOr<Page> DecodePage(absl::string_view body);
[[nodiscard]] absl::StatusOr<KeeperStatus> DecodeStatus(absl::string_view body);
[[nodiscard]] absl::StatusOr<KeptCount> DecodeCount(absl::string_view body);
[[nodiscard]] absl::StatusOr<Estate> DecodeEstate(absl::string_view body);
// The error that was sent, with a message always; INVALID_ARGUMENT where none was.
[[nodiscard]] Refusal DecodeRefusal(absl::string_view body);
[[nodiscard]] absl::StatusOr<std::string> DecodeKey(absl::string_view body);
[[nodiscard]] absl::StatusOr<bool> DecodeHandOver(absl::string_view body);
[[nodiscard]] absl::StatusOr<uint64_t> DecodeAfter(absl::string_view body);

// 1 to kMaxKeyBytes of [a-z0-9/._-].
[[nodiscard]] bool IsKey(absl::string_view key);

}  // namespace gmb::keeper

#endif  // GMB_KEEPER_WIRE_MESSAGES_H_
