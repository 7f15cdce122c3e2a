// `gmb top`: what its keys do.
#include "client/cli/top/controls.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace gmb::cli::top {
namespace {

constexpr size_t kLongestAnswer = 64;

}  // namespace

Controls::Next Controls::Press(Key key, const Extent& extent) {
  if (asked_ != Asked::kNothing) return PressInPrompt(key);
  if (scene_->help) {
    scene_->help = false;
    return key == 'q' || key == kKeyF10 ? Next::kQuit : Next::kDraw;
  }
  switch (key) {
    case 'q':
    case kKeyF10:
      return Next::kQuit;
    case ' ':
    case '\r':
    case '\n':
      return Next::kLookNow;
    case 'h':
    case '?':
    case kKeyF1:
      scene_->help = true;
      break;
    case 'd':
    case 's':
      Ask(Asked::kDelay);
      break;
    case '/':
    case 'u':
      Ask(Asked::kTenant);
      break;
    case 'M':
      SortBy(Sort::kBytes);
      break;
    case 'C':
      SortBy(Sort::kChange);
      break;
    case 'E':
      SortBy(Sort::kEvicted);
      break;
    case 'W':
      SortBy(Sort::kWaiting);
      break;
    case 'T':
      SortBy(Sort::kIdle);
      break;
    case 'N':
      SortBy(Sort::kName);
      break;
    case '<':
      Step(-1);
      break;
    case '>':
      Step(1);
      break;
    case 'R':
      scene_->choice.reversed = !scene_->choice.reversed;
      break;
    case 'i':
      scene_->choice.hide_idle = !scene_->choice.hide_idle;
      break;
    case '\t':
      scene_->panel =
          scene_->panel == Panel::kTenants ? Panel::kSessions : Panel::kTenants;
      break;
    default:
      Scroll(key, extent);
  }
  return Next::kDraw;
}

void Controls::SortBy(Sort sort) {
  scene_->choice.sort = sort;
  scene_->first_tenant = 0;
  scene_->first_session = 0;
}

void Controls::Step(int by) {
  const auto count = static_cast<int>(std::size(kSorts));
  const auto* const at =
      std::find(std::begin(kSorts), std::end(kSorts), scene_->choice.sort);
  const auto place = static_cast<int>(at - std::begin(kSorts));
  SortBy(kSorts[(place + by + count) % count]);
}

void Controls::Scroll(Key key, const Extent& extent) {
  const bool of_tenants = scene_->panel == Panel::kTenants;
  size_t& first = of_tenants ? scene_->first_tenant : scene_->first_session;
  const size_t lines = of_tenants ? extent.tenant_rows : extent.session_rows;
  const size_t all = of_tenants ? extent.tenants : extent.sessions;
  const size_t last = all - std::min(all, lines);
  switch (key) {
    case kKeyUp:
      first -= std::min<size_t>(first, 1);
      break;
    case kKeyDown:
      ++first;
      break;
    case kKeyPageUp:
      first -= std::min(first, lines);
      break;
    case kKeyPageDown:
      first += lines;
      break;
    case kKeyHome:
      first = 0;
      break;
    case kKeyEnd:
      first = last;
      break;
    default:
      return;
  }
  first = std::min(first, last);
}

void Controls::Ask(Asked what) {
  asked_ = what;
  answer_.clear();
  complaint_.clear();
  ShowPrompt();
}

void Controls::ShowPrompt() {
  scene_->prompt =
      asked_ == Asked::kNothing ? ""
      : asked_ == Asked::kDelay
          ? absl::StrCat(complaint_, "seconds between two looks (",
                         absl::FormatDuration(scene_->delay), "): ", answer_,
                         "_")
          : absl::StrCat("tenants with this in their names (empty: all): ",
                         answer_, "_");
}

Controls::Next Controls::PressInPrompt(Key key) {
  if (key == '\r' || key == '\n') {
    Answer();
  } else if (key == kKeyEscape) {
    asked_ = Asked::kNothing;
  } else if (key == kKeyBackspace || key == '\b') {
    if (!answer_.empty()) answer_.pop_back();
  } else if (key > ' ' && key < kKeyBackspace &&
             answer_.size() < kLongestAnswer) {
    answer_.push_back(static_cast<char>(key));
  }
  ShowPrompt();
  return Next::kDraw;
}

void Controls::Answer() {
  if (asked_ == Asked::kTenant) {
    scene_->choice.tenant_part = answer_;
    scene_->first_tenant = 0;
    scene_->first_session = 0;
  } else if (!answer_.empty()) {
    double seconds = 0;
    const bool is_number = absl::SimpleAtod(answer_, &seconds);
    const absl::Duration delay = absl::Seconds(seconds);
    if (!is_number || !(delay >= kLeastDelay && delay <= kMostDelay)) {
      complaint_ = "a number from 0.1 to 3600. ";
      answer_.clear();
      return;
    }
    scene_->delay = delay;
  }
  asked_ = Asked::kNothing;
}

}  // namespace gmb::cli::top
