// Between broker and keeper: what is asked and answered.
#include "keeper/wire/messages.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "keeper/wire/bytes.h"
#include "keeper/wire/crc32c.h"

namespace gmb::keeper {
namespace {

constexpr uint8_t kNoPeer = 0xff;

absl::Status Damaged(absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("a message of a keeper's protocol is damaged: ", what));
}

std::string EntryBytes(const EntryHead& entry) {
  return ByteWriter()
      .Number(entry.order)
      .Text(entry.key)
      .Text(entry.record)
      .Number(entry.fds)
      .Number(entry.peer.value_or(kNoPeer))
      .Take();
}

// The order is the keeper's own: the rest is as the broker wrote it.
uint32_t ChecksumOf(EntryHead entry) {
  entry.order = 0;
  return Crc32c(EntryBytes(entry));
}

absl::StatusOr<EntryHead> ReadEntry(ByteReader* reader) {
  EntryHead entry;
  entry.order = reader->Number<uint64_t>();
  entry.key = reader->Text(kMaxKeyBytes);
  entry.record = reader->Text(kMaxRecordBytes);
  entry.fds = reader->Number<uint8_t>();
  const auto peer = reader->Number<uint8_t>();
  if (peer != kNoPeer) entry.peer = peer;
  const auto checksum = reader->Number<uint32_t>();
  if (!reader->ok()) return Damaged("an entry");
  if (checksum != ChecksumOf(entry)) {
    return absl::DataLossError(
        absl::StrCat("a kept entry has another checksum: ",
                     IsKey(entry.key) ? entry.key : "its name is none"));
  }
  if (!IsKey(entry.key)) return Damaged("the name of an entry");
  if (entry.fds == 0 || entry.fds > kMaxEntryFds)
    return Damaged("an entry has 1 to 8 fds");
  if (entry.peer.has_value() && *entry.peer >= entry.fds)
    return Damaged("the peer of an entry is none of its fds");
  return entry;
}

}  // namespace

bool IsKey(absl::string_view key) {
  return !key.empty() && key.size() <= kMaxKeyBytes &&
         std::all_of(key.begin(), key.end(), [](char c) {
           return absl::ascii_islower(c) || absl::ascii_isdigit(c) ||
                  c == '/' || c == '.' || c == '_' || c == '-';
         });
}

std::string Encode(const Hello& hello) {
  return ByteWriter()
      .Number(hello.oldest_version)
      .Number(hello.newest_version)
      .Number(static_cast<uint8_t>(hello.role))
      .Number(static_cast<uint8_t>(hello.wait ? 1 : 0))
      .Text(hello.nonce)
      .Take();
}

absl::StatusOr<Hello> DecodeHello(absl::string_view body) {
  ByteReader reader(body);
  Hello hello;
  hello.oldest_version = reader.Number<uint16_t>();
  hello.newest_version = reader.Number<uint16_t>();
  const auto role = reader.Number<uint8_t>();
  const auto wait = reader.Number<uint8_t>();
  hello.nonce = reader.Text(kNonceBytes);
  // A newer peer may say more: what this one needs is in front.
  if (!reader.ok() || hello.nonce.size() != kNonceBytes || role < 1 ||
      role > 3 || wait > 1) {
    return Damaged("a Hello");
  }
  hello.role = static_cast<Role>(role);
  hello.wait = wait == 1;
  return hello;
}

std::string Encode(const Welcome& welcome) {
  return ByteWriter()
      .Number(welcome.version)
      .Text(welcome.keeper_id)
      .Number(welcome.entries)
      .Number(welcome.fds)
      .Take();
}

absl::StatusOr<Welcome> DecodeWelcome(absl::string_view body) {
  ByteReader reader(body);
  Welcome welcome;
  welcome.version = reader.Number<uint16_t>();
  welcome.keeper_id = reader.Text(kKeeperIdBytes);
  welcome.entries = reader.Number<uint64_t>();
  welcome.fds = reader.Number<uint64_t>();
  if (!reader.AtEnd() || welcome.keeper_id.size() != kKeeperIdBytes)
    return Damaged("a Welcome");
  return welcome;
}

std::string Encode(const EntryHead& entry) {
  return absl::StrCat(EntryBytes(entry),
                      ByteWriter().Number(ChecksumOf(entry)).Take());
}

absl::StatusOr<EntryHead> DecodeEntry(absl::string_view body) {
  ByteReader reader(body);
  GMB_ASSIGN_OR_RETURN(EntryHead entry, ReadEntry(&reader));
  if (!reader.AtEnd()) return Damaged("something follows an entry");
  return entry;
}

std::string Encode(const Page& page) {
  std::string body = ByteWriter()
                         .Number(static_cast<uint8_t>(page.more ? 1 : 0))
                         .Number(static_cast<uint16_t>(page.entries.size()))
                         .Take();
  for (const EntryHead& entry : page.entries) body += Encode(entry);
  return body;
}

absl::StatusOr<Page> DecodePage(absl::string_view body) {
  ByteReader reader(body);
  Page page;
  const auto more = reader.Number<uint8_t>();
  const auto entries = reader.Number<uint16_t>();
  if (!reader.ok() || more > 1 || entries > kMaxPageEntries)
    return Damaged("a page");
  page.more = more == 1;
  for (int i = 0; i < entries; ++i) {
    GMB_ASSIGN_OR_RETURN(EntryHead entry, ReadEntry(&reader));
    page.entries.push_back(std::move(entry));
  }
  if (!reader.AtEnd()) return Damaged("something follows a page");
  return page;
}

std::string Encode(const KeeperStatus& status) {
  return ByteWriter()
      .Number(static_cast<uint32_t>(status.pid))
      .Number(static_cast<uint8_t>(status.broker))
      .Number(static_cast<uint32_t>(status.broker_pid))
      .Number(status.entries)
      .Number(status.fds)
      .Number(status.max_entries)
      .Number(status.max_fds)
      .Number(status.living_peers)
      .Number(static_cast<uint8_t>(status.gives_back_in_ms.has_value() ? 1 : 0))
      .Number(status.gives_back_in_ms.value_or(0))
      .Take();
}

absl::StatusOr<KeeperStatus> DecodeStatus(absl::string_view body) {
  ByteReader reader(body);
  KeeperStatus status;
  status.pid = static_cast<int32_t>(reader.Number<uint32_t>());
  const auto broker = reader.Number<uint8_t>();
  status.broker_pid = static_cast<int32_t>(reader.Number<uint32_t>());
  status.entries = reader.Number<uint64_t>();
  status.fds = reader.Number<uint64_t>();
  status.max_entries = reader.Number<uint64_t>();
  status.max_fds = reader.Number<uint64_t>();
  status.living_peers = reader.Number<uint64_t>();
  const auto gives_back = reader.Number<uint8_t>();
  const auto in_ms = reader.Number<uint64_t>();
  if (!reader.AtEnd() || broker > 3 || gives_back > 1)
    return Damaged("a status");
  status.broker = static_cast<KeeperStatus::Broker>(broker);
  if (gives_back == 1) status.gives_back_in_ms = in_ms;
  return status;
}

std::string Encode(const KeptCount& count) {
  return ByteWriter()
      .Number(count.sessions)
      .Number(count.living_sessions)
      .Number(count.memory_bytes)
      .Take();
}

absl::StatusOr<KeptCount> DecodeCount(absl::string_view body) {
  ByteReader reader(body);
  KeptCount count;
  count.sessions = reader.Number<uint64_t>();
  count.living_sessions = reader.Number<uint64_t>();
  count.memory_bytes = reader.Number<uint64_t>();
  if (!reader.AtEnd() || count.living_sessions > count.sessions)
    return Damaged("a count");
  return count;
}

std::string Encode(const Estate& estate) {
  return ByteWriter()
      .Text(estate.keeper_id)
      .Number(estate.entries)
      .Number(estate.last_order)
      .Number(estate.holders)
      .Number(static_cast<uint8_t>(estate.broker))
      .Number(static_cast<uint32_t>(estate.broker_pid))
      .Number(estate.broker_died_ms)
      .Number(estate.last_peer_died_ms)
      .Take();
}

absl::StatusOr<Estate> DecodeEstate(absl::string_view body) {
  ByteReader reader(body);
  Estate estate;
  estate.keeper_id = reader.Text(kKeeperIdBytes);
  estate.entries = reader.Number<uint64_t>();
  estate.last_order = reader.Number<uint64_t>();
  estate.holders = reader.Number<uint64_t>();
  const auto broker = reader.Number<uint8_t>();
  estate.broker_pid = static_cast<int32_t>(reader.Number<uint32_t>());
  estate.broker_died_ms = reader.Number<uint64_t>();
  estate.last_peer_died_ms = reader.Number<uint64_t>();
  // A newer keeper may leave more.
  if (!reader.ok() || estate.keeper_id.size() != kKeeperIdBytes || broker > 3)
    return Damaged("an estate");
  estate.broker = static_cast<KeeperStatus::Broker>(broker);
  return estate;
}

std::string EncodeRefusal(const Refusal& why) {
  return ByteWriter()
      .Number(static_cast<uint16_t>(why.code()))
      .Text(why.message().substr(0, kMaxTextBytes))
      .Take();
}

Refusal DecodeRefusal(absl::string_view body) {
  ByteReader reader(body);
  const auto code = reader.Number<uint16_t>();
  const std::string text = reader.Text(kMaxTextBytes);
  if (!reader.AtEnd() || code == 0 || code > 16) return Damaged("a refusal");
  return {static_cast<absl::StatusCode>(code),
          text.empty() ? "the keeper refuses, and does not say why" : text};
}

std::string EncodeKey(absl::string_view key) {
  return ByteWriter().Text(key).Take();
}

absl::StatusOr<std::string> DecodeKey(absl::string_view body) {
  ByteReader reader(body);
  std::string key = reader.Text(kMaxKeyBytes);
  if (!reader.AtEnd() || !IsKey(key)) return Damaged("a name");
  return key;
}

std::string EncodeHandOver(bool managed) {
  return ByteWriter().Number(static_cast<uint8_t>(managed ? 1 : 0)).Take();
}

absl::StatusOr<bool> DecodeHandOver(absl::string_view body) {
  ByteReader reader(body);
  const auto managed = reader.Number<uint8_t>();
  if (!reader.AtEnd() || managed > 1) return Damaged("a hand-over");
  return managed == 1;
}

std::string EncodeAfter(uint64_t order) {
  return ByteWriter().Number(order).Take();
}

absl::StatusOr<uint64_t> DecodeAfter(absl::string_view body) {
  ByteReader reader(body);
  const auto order = reader.Number<uint64_t>();
  if (!reader.AtEnd()) return Damaged("a place");
  return order;
}

}  // namespace gmb::keeper
