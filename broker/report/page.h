#ifndef GMB_BROKER_REPORT_PAGE_H_
#define GMB_BROKER_REPORT_PAGE_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gmb::broker::report {

// The most rows of one answer, and what they come to, or a little more: gRPC
// receives no message above 4 MiB.
inline constexpr size_t kMostRows = 1000;
inline constexpr size_t kMostPageBytes = size_t{1} << 20;
// A report may do so much while it holds the core's lock once: build so many
// rows, and look at so many things.
inline constexpr size_t kRowsASlice = 64;
inline constexpr size_t kLooksASlice = 2048;

// A page under way. Rows are built slice by slice, each under the core's lock,
// which others take in between.
struct Page {
  size_t most_rows = kMostRows;
  // Of the last row that was built or passed over; empty: of none. Rows are in
  // the order of their keys and keep these, so that pages miss none and repeat
  // none.
  std::string after;
  // Whether there may be more after it.
  bool more = true;

  [[nodiscard]] bool first() const { return after.empty(); }
};

// Which list a token is for: its name, what picks its rows, and of how many
// numbers a key is made; 0: it is a name.
struct ListName {
  absl::string_view list;
  absl::string_view filter = {};
  size_t numbers = 1;
};

// Reads what the caller asks for. BAD_REQUEST: a negative size, or a token that
// NextToken has not made for this list.
[[nodiscard]] absl::StatusOr<Page> ReadPage(const ListName& name, int32_t size,
                                            absl::string_view token,
                                            size_t default_rows = kMostRows);
// Empty when there is no more.
[[nodiscard]] std::string NextToken(const ListName& name, const Page& page);

// A key of numbers: ids, say. The key with the greater ones is the later.
[[nodiscard]] std::string KeyOf(std::initializer_list<uint64_t> numbers);
// The number at that place in a key; 0 of the empty key.
[[nodiscard]] uint64_t NumberIn(absl::string_view key, size_t place = 0);

// The whole answer of a list call. `slice(page, most_rows, response)` adds rows
// to `rows(response)` and says how far it came.
template <typename Response, typename Request, typename Rows, typename Slice>
absl::StatusOr<Response> FillPage(const ListName& name, const Request& request,
                                  const Rows& rows, const Slice& slice,
                                  size_t default_rows = kMostRows) {
  absl::StatusOr<Page> page =
      ReadPage(name, request.page_size(), request.page_token(), default_rows);
  if (!page.ok()) return page.status();
  Response response;
  size_t bytes = 0;
  for (size_t built = 0;
       page->more && built < page->most_rows && bytes < kMostPageBytes;) {
    const size_t most = std::min(kRowsASlice, page->most_rows - built);
    if (absl::Status done = slice(&*page, most, &response); !done.ok())
      return done;
    const auto& all = rows(response);
    for (; built < static_cast<size_t>(all.size()); ++built)
      bytes += all.Get(static_cast<int>(built)).ByteSizeLong();
  }
  response.set_next_page_token(NextToken(name, *page));
  return response;
}

}  // namespace gmb::broker::report

#endif  // GMB_BROKER_REPORT_PAGE_H_
