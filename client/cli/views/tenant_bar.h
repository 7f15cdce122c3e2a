#ifndef GMB_CLIENT_CLI_VIEWS_TENANT_BAR_H_
#define GMB_CLIENT_CLI_VIEWS_TENANT_BAR_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/text/terminal.h"
#include "gmb/v1/types.pb.h"

namespace gmb::cli {

// The marks that a tenant's bar is drawn with, one character each.
struct BarGlyphs {
  absl::string_view held, borrowed, evicted, empty, beyond, guarantee, limit;
};
[[nodiscard]] BarGlyphs BarGlyphsFor(const Terminal& terminal);

// A tenant's bytes in `columns` characters of which all are `scale_bytes`: those
// within its guarantee, borrowed, and off the device, with marks where its
// guarantee and its limit are (a limit beyond the scale has none).
[[nodiscard]] std::string TenantBar(const v1::QuotaView& view,
                                    uint64_t scale_bytes, int columns,
                                    const Terminal& terminal);

}  // namespace gmb::cli

#endif  // GMB_CLIENT_CLI_VIEWS_TENANT_BAR_H_
