// Processes past the broker, for people.
#include "client/cli/views/outside_view.h"

#include "absl/strings/str_cat.h"
#include "client/cli/text/text.h"

namespace gmb::cli {

void PrintOutside(
    const google::protobuf::RepeatedPtrField<v1::OutsideProcess>& list,
    const Terminal& terminal, std::ostream& out) {
  for (const v1::OutsideProcess& process : list) {
    out << terminal.Paint(Tone::kWarning,
                          absl::StrCat("outside, pid ", process.pid()));
    if (!process.program().empty()) out << ' ' << Printable(process.program());
    out << ": " << SizeText(process.used_bytes()) << " of "
        << Printable(process.device()) << ", without a session\n";
  }
}

}  // namespace gmb::cli
