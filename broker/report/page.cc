// Where a list goes on: page tokens, which say it in words that only the broker
// needs to know.
#include "broker/report/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/error_status.h"

namespace gmb::broker::report {
namespace {

// Every token of the list begins with this. Names and filters have no spaces.
std::string PrefixOf(const ListName& name) {
  return absl::StrCat(name.list, " ", name.filter, " ");
}

bool IsKey(const ListName& name, absl::string_view key) {
  if (name.numbers == 0) return !key.empty();
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '.');
  return parts.size() == name.numbers &&
         std::all_of(parts.begin(), parts.end(), [](absl::string_view part) {
           uint64_t number = 0;
           return absl::SimpleAtoi(part, &number);
         });
}

}  // namespace

absl::StatusOr<Page> ReadPage(const ListName& name, int32_t size,
                              absl::string_view token, size_t default_rows) {
  if (size < 0) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("a page has from 1 to ", kMostRows,
                     " rows, or 0 for the usual number: page_size=", size),
        {.field = "page_size"});
  }
  Page page;
  page.most_rows =
      size == 0 ? default_rows : std::min(kMostRows, static_cast<size_t>(size));
  if (token.empty()) return page;
  std::string text;
  absl::string_view key;
  if (absl::WebSafeBase64Unescape(token, &text)) key = text;
  if (!absl::ConsumePrefix(&key, PrefixOf(name)) || !IsKey(name, key)) {
    return proto::MakeError(
        v1::BAD_REQUEST,
        absl::StrCat("the page token is none that was given for these ",
                     name.list,
                     ": begin again without it, or leave the other fields as "
                     "they were"),
        {.field = "page_token"});
  }
  page.after = std::string(key);
  return page;
}

std::string NextToken(const ListName& name, const Page& page) {
  if (!page.more || page.after.empty()) return "";
  return absl::WebSafeBase64Escape(absl::StrCat(PrefixOf(name), page.after));
}

std::string KeyOf(std::initializer_list<uint64_t> numbers) {
  return absl::StrJoin(numbers, ".");
}

uint64_t NumberIn(absl::string_view key, size_t place) {
  const std::vector<absl::string_view> parts = absl::StrSplit(key, '.');
  uint64_t number = 0;
  if (place >= parts.size() || !absl::SimpleAtoi(parts[place], &number))
    return 0;
  return number;
}

}  // namespace gmb::broker::report
