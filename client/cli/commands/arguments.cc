// The command line: options whose values have a form of their own.
#include "client/cli/commands/arguments.h"

#include <cstdint>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"
#include "client/cli/text/number_text.h"
#include "proto/amount_text.h"

namespace gmb::cli {
namespace {

absl::StatusOr<absl::Duration> ParseDuration(const std::string& text) {
  absl::Duration duration;
  // A day has no unit in Abseil, since some have 23 hours; here it is 24.
  uint32_t days = 0;
  absl::string_view number = text;
  if (absl::ConsumeSuffix(&number, "d") && absl::SimpleAtoi(number, &days)) {
    duration = days * absl::Hours(24);
  } else if (!absl::ParseDuration(text, &duration) ||
             duration < absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        "write a number and a unit, like 30s, 5m, 1h30m or 7d; got \"" + text +
        "\"");
  }
  return duration;
}

template <typename Value, typename To>
absl::Status Store(const absl::StatusOr<Value>& value, To* to) {
  if (value.ok()) *to = *value;
  return value.status();
}

}  // namespace

CLI::Option* AddParsedOption(
    CLI::App* app, const std::string& name,
    std::function<absl::Status(const std::string&)> parse,
    const std::string& description) {
  return app->add_option_function<std::string>(
      name,
      [name, parse = std::move(parse)](const std::string& text) {
        const absl::Status parsed = parse(text);
        if (!parsed.ok())
          throw CLI::ValidationError(name, std::string(parsed.message()));
      },
      description);
}

CLI::Option* AddTextOption(CLI::App* app, const std::string& name,
                           std::string* value, const std::string& description) {
  return AddParsedOption(
      app, name,
      [value](const std::string& text) {
        if (text.empty()) {
          return absl::InvalidArgumentError(
              "the value is empty: write one, or leave the option out");
        }
        *value = text;
        return absl::OkStatus();
      },
      description);
}

CLI::Option* AddWholeOption(CLI::App* app, const std::string& name,
                            uint64_t least, uint64_t most,
                            std::function<void(uint64_t)> take,
                            const std::string& description) {
  return AddParsedOption(
             app, name,
             [least, most, take = std::move(take)](const std::string& text) {
               const absl::StatusOr<uint64_t> value =
                   ParseWhole(text, least, most);
               if (value.ok()) take(*value);
               return value.status();
             },
             description)
      ->type_name("N");
}

CLI::Option* AddAmountOption(CLI::App* app, const std::string& name,
                             std::optional<v1::Amount>* value,
                             const std::string& description) {
  return AddParsedOption(
             app, name,
             [value](const std::string& text) {
               return Store(proto::ParseAmount(text), value);
             },
             description)
      ->type_name("SIZE|PERCENT");
}

CLI::Option* AddBytesOption(CLI::App* app, const std::string& name,
                            uint64_t* value, const std::string& description) {
  return AddParsedOption(
             app, name,
             [value](const std::string& text) {
               return Store(proto::ParseBytes(text), value);
             },
             description)
      ->type_name("SIZE");
}

CLI::Option* AddDurationOption(CLI::App* app, const std::string& name,
                               absl::Duration* value,
                               const std::string& description) {
  return AddParsedOption(
             app, name,
             [value](const std::string& text) {
               return Store(ParseDuration(text), value);
             },
             description)
      ->type_name("DURATION");
}

CLI::Option* AddBoundedDurationOption(CLI::App* app, const std::string& name,
                                      absl::Duration least, absl::Duration most,
                                      std::function<void(absl::Duration)> take,
                                      const std::string& description) {
  return AddParsedOption(
             app, name,
             [least, most, take = std::move(take)](const std::string& text) {
               GMB_ASSIGN_OR_RETURN(const absl::Duration value,
                                    ParseDuration(text));
               if (value < least || value > most) {
                 return absl::InvalidArgumentError(absl::StrCat(
                     "write a time from ", absl::FormatDuration(least), " to ",
                     absl::FormatDuration(most), "; got \"", text, "\""));
               }
               take(value);
               return absl::OkStatus();
             },
             description)
      ->type_name("DURATION");
}

}  // namespace gmb::cli
