// The messages between broker and keeper: round trips, and any other bytes.
#include "keeper/wire/messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "keeper/shelf.h"
#include "keeper/wire/crc32c.h"
#include "keeper/wire/frame.h"

namespace gmb::keeper {
namespace {

EntryHead RandomEntry(std::mt19937& random) {
  EntryHead entry;
  entry.order = random();
  entry.key = absl::StrCat("key/", random());
  entry.record = std::string(random() % (kMaxRecordBytes + 1), 'r');
  entry.fds = static_cast<uint8_t>(1 + random() % kMaxEntryFds);
  if (random() % 2 == 0)
    entry.peer = static_cast<uint8_t>(random() % entry.fds);
  return entry;
}

void ExpectSame(const EntryHead& a, const EntryHead& b) {
  EXPECT_EQ(a.order, b.order);
  EXPECT_EQ(a.key, b.key);
  EXPECT_EQ(a.record, b.record);
  EXPECT_EQ(a.fds, b.fds);
  EXPECT_EQ(a.peer, b.peer);
}

TEST(KeeperMessages, TheChecksumIsTheOneOfTheRfc) {
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(Crc32c("6789", Crc32c("12345")), Crc32c("123456789"));
}

TEST(KeeperMessages, ComeBackAsTheyWereSent) {
  for (uint32_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    const EntryHead entry = RandomEntry(random);
    const auto entry_again = DecodeEntry(Encode(entry));
    ASSERT_TRUE(entry_again.ok()) << entry_again.status();
    ExpectSame(*entry_again, entry);

    Page page;
    page.more = random() % 2 == 0;
    const size_t entries = random() % (kMaxPageEntries + 1);
    for (size_t i = 0; i < entries; ++i)
      page.entries.push_back(RandomEntry(random));
    const std::string packet = Encode(Frame{Kind::kPage, 7, Encode(page)});
    EXPECT_LE(packet.size(), kMaxFrameBytes);
    const auto frame = Decode(packet);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->call, 7U);
    const auto page_again = DecodePage(frame->body);
    ASSERT_TRUE(page_again.ok()) << page_again.status();
    EXPECT_EQ(page_again->more, page.more);
    ASSERT_EQ(page_again->entries.size(), entries);
    for (size_t i = 0; i < entries; ++i)
      ExpectSame(page_again->entries[i], page.entries[i]);
  }
  const absl::Status refusal = absl::NotFoundError("no such name");
  EXPECT_EQ(DecodeRefusal(EncodeRefusal(refusal)), refusal);
  EXPECT_EQ(DecodeRefusal(EncodeRefusal(absl::AbortedError(""))),
            absl::AbortedError("the keeper refuses, and does not say why"));
  EXPECT_EQ(*DecodeKey(EncodeKey("slab/1")), "slab/1");
  EXPECT_EQ(*DecodeAfter(EncodeAfter(~uint64_t{0})), ~uint64_t{0});
  EXPECT_TRUE(*DecodeHandOver(EncodeHandOver(true)));
  EXPECT_FALSE(*DecodeHandOver(EncodeHandOver(false)));
  KeeperStatus status;
  status.broker = KeeperStatus::Broker::kHungUp;
  status.gives_back_in_ms = 5;
  EXPECT_EQ(DecodeStatus(Encode(status))->gives_back_in_ms, 5U);
  const KeptCount count{
      .sessions = 3, .living_sessions = 2, .memory_bytes = 4096};
  EXPECT_EQ(DecodeCount(Encode(count))->sessions, 3U);
  EXPECT_EQ(DecodeCount(Encode(count))->living_sessions, 2U);
  EXPECT_EQ(DecodeCount(Encode(count))->memory_bytes, 4096U);
  EXPECT_FALSE(DecodeCount(Encode(KeptCount{.living_sessions = 1})).ok());
}

// One changed bit of an entry is always found, but in its order, which is the
// keeper's own.
TEST(KeeperMessages, AChangedEntryIsRefused) {
  std::mt19937 random(1);
  const std::string good = Encode(RandomEntry(random));
  for (size_t at = sizeof(uint64_t); at < good.size(); ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ (1 << bit));
      EXPECT_FALSE(DecodeEntry(bad).ok()) << at << " " << bit;
    }
  }
}

TEST(KeeperMessages, AnyBytesAreReadWithoutHarm) {
  for (uint32_t seed = 1; seed <= 5000; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    std::string bytes = random() % 2 == 0
                            ? Encode(Page{{RandomEntry(random)}, false})
                            : std::string(random() % 100, '\0');
    for (int i = 0; i < 4 && !bytes.empty(); ++i)
      bytes[random() % bytes.size()] = static_cast<char>(random());
    bytes.resize(random() % (bytes.size() + 2));
    (void)DecodeHello(bytes);
    (void)DecodeWelcome(bytes);
    (void)DecodeStatus(bytes);
    (void)DecodeCount(bytes);
    (void)DecodeKey(bytes);
    (void)DecodeAfter(bytes);
    (void)DecodeHandOver(bytes);
    EXPECT_FALSE(DecodeRefusal(bytes).ok());
    if (const auto page = DecodePage(bytes); page.ok()) {
      EXPECT_LE(page->entries.size(), kMaxPageEntries);
    }
    if (const auto entry = DecodeEntry(bytes); entry.ok()) {
      EXPECT_TRUE(IsKey(entry->key));
    }
    if (const auto frame = Decode(bytes); frame.ok()) {
      EXPECT_EQ(Encode(*frame), bytes);
    }
  }
}

TEST(KeeperMessages, AFrameIsAsLongAsItSays) {
  const std::string good = Encode(Frame{Kind::kPut, 1, "body"});
  EXPECT_TRUE(Decode(good).ok());
  EXPECT_FALSE(Decode(good + "x").ok());
  EXPECT_FALSE(Decode(good.substr(0, good.size() - 1)).ok());
  EXPECT_FALSE(
      Decode(Encode(Frame{Kind::kPut, 1, std::string(kMaxFrameBytes, 'x')}))
          .ok());
}

TEST(KeeperMessages, ANameIsOfAFewCharacters) {
  for (const char* const good : {"a", "slab/17", "a.b_c-d/0"})
    EXPECT_TRUE(IsKey(good)) << good;
  EXPECT_TRUE(IsKey(std::string(kMaxKeyBytes, 'k')));
  for (const char* const bad : {"", "A", "a b", "a\n", "\xc3\xa4"})
    EXPECT_FALSE(IsKey(bad)) << bad;
  EXPECT_FALSE(IsKey(std::string(kMaxKeyBytes + 1, 'k')));
}

KeptEntry EntryOf(const std::string& key, size_t fds) {
  KeptEntry entry;
  entry.head = {.key = key, .fds = static_cast<uint8_t>(fds)};
  entry.fds.resize(fds);
  return entry;
}

TEST(Shelf, PagesCarryWhatAPacketCan) {
  Shelf shelf({.entries = 1000, .fds = 10'000});
  for (int i = 0; i < 100; ++i) shelf.Add(EntryOf(absl::StrCat("k/", i), 8));
  uint64_t after = 0;
  size_t entries = 0;
  bool more = true;
  while (more) {
    const Shelf::Next next = shelf.After(after);
    ASSERT_FALSE(next.entries.empty());
    size_t fds = 0;
    for (const KeptEntry* entry : next.entries) {
      EXPECT_EQ(entry->head.key, absl::StrCat("k/", entries++));
      EXPECT_GT(entry->head.order, after);
      after = entry->head.order;
      fds += entry->fds.size();
    }
    EXPECT_LE(fds, kMaxPageFds);
    EXPECT_LE(next.entries.size(), kMaxPageEntries);
    more = next.more;
  }
  EXPECT_EQ(entries, 100U);
  EXPECT_FALSE(shelf.After(after).more);
}

TEST(Shelf, CountsWhatItHas) {
  Shelf shelf({.entries = 2, .fds = 5});
  shelf.Add(EntryOf("a", 3));
  EXPECT_TRUE(absl::IsAlreadyExists(shelf.Check(EntryOf("a", 1).head, 1)));
  EXPECT_TRUE(absl::IsResourceExhausted(shelf.Check(EntryOf("b", 3).head, 3)));
  EXPECT_TRUE(absl::IsInvalidArgument(shelf.Check(EntryOf("b", 2).head, 1)));
  ASSERT_TRUE(shelf.Check(EntryOf("b", 2).head, 2).ok());
  shelf.Add(EntryOf("b", 2));
  EXPECT_EQ(shelf.fds(), 5U);
  EXPECT_FALSE(shelf.Take("c").has_value());
  EXPECT_TRUE(shelf.Take("a").has_value());
  EXPECT_EQ(shelf.fds(), 2U);
  // An order is used once.
  EXPECT_EQ(shelf.Add(EntryOf("a", 1)).head.order, 3U);
  EXPECT_TRUE(absl::IsResourceExhausted(shelf.Check(EntryOf("d", 1).head, 1)));
  EXPECT_EQ(shelf.TakeAll().size(), 2U);
  EXPECT_EQ(shelf.fds(), 0U);
  EXPECT_EQ(shelf.entries(), 0U);
}

}  // namespace
}  // namespace gmb::keeper
