#ifndef GMB_CLIENT_CLI_TOP_CONTROLS_H_
#define GMB_CLIENT_CLI_TOP_CONTROLS_H_

#include <string>

#include "client/cli/top/frame.h"
#include "client/cli/top/keys.h"

namespace gmb::cli::top {

// The effects of keys on a scene.
class Controls {
 public:
  explicit Controls(Scene* scene) : scene_(scene) {}

  enum class Next { kDraw, kLookNow, kQuit };
  // `extent`: of what was drawn last.
  [[nodiscard]] Next Press(Key key, const Extent& extent);

 private:
  enum class Asked { kNothing, kDelay, kTenant };

  Next PressInPrompt(Key key);
  void Scroll(Key key, const Extent& extent);
  void SortBy(Sort sort);
  void Step(int by);
  void Ask(Asked what);
  void Answer();
  void ShowPrompt();

  Scene* const scene_;
  Asked asked_ = Asked::kNothing;
  std::string answer_;
  std::string complaint_;
};

// The shortest time between two looks, and the longest.
inline constexpr absl::Duration kLeastDelay = absl::Milliseconds(100);
inline constexpr absl::Duration kMostDelay = absl::Hours(1);

}  // namespace gmb::cli::top

#endif  // GMB_CLIENT_CLI_TOP_CONTROLS_H_
