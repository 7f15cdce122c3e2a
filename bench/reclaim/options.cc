#include "bench/reclaim/options.h"

#include <algorithm>
#include <map>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "device/devices.h"
#include "proto/amount_text.h"

namespace gmb::bench {
namespace {

constexpr uint64_t kOptionMiB = uint64_t{1} << 20;
constexpr uint64_t kOptionGiB = uint64_t{1} << 30;
constexpr char kAllSections[] = "moves,small,backed,neighbours,large";

absl::Status ReadBytes(const std::string& text, uint64_t* bytes) {
  const absl::StatusOr<uint64_t> parsed = proto::ParseBytes(text);
  if (!parsed.ok()) return parsed.status();
  if (*parsed == 0 || *parsed % (2 * kOptionMiB) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("write a multiple of 2MiB; got ", text));
  }
  *bytes = *parsed;
  return absl::OkStatus();
}

absl::Status CheckSections(const std::string& text) {
  const std::vector<std::string> known = absl::StrSplit(kAllSections, ',');
  for (const std::string& section :
       std::vector<std::string>(absl::StrSplit(text, ','))) {
    if (std::find(known.begin(), known.end(), section) == known.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "no section \"", section, "\": write some of ", kAllSections));
    }
  }
  return absl::OkStatus();
}

absl::Status Set(const std::string& name, const std::string& value,
                 ReclaimOptions* options) {
  const std::map<std::string, std::string*> texts = {
      {"--device", &options->device},
      {"--pool", &options->pool},
      {"--host-pool", &options->host_pool},
      {"--log", &options->log}};
  if (const auto text = texts.find(name); text != texts.end()) {
    *text->second = value;
    return absl::OkStatus();
  }
  if (name == "--bytes") return ReadBytes(value, &options->bytes);
  if (name == "--large-bytes") return ReadBytes(value, &options->large_bytes);
  if (name == "--only") {
    options->sections = value;
    return CheckSections(value);
  }
  if (name == "--rounds" && absl::SimpleAtoi(value, &options->rounds) &&
      options->rounds > 0) {
    return absl::OkStatus();
  }
  if (name == "--section-seconds" &&
      absl::SimpleAtoi(value, &options->section_seconds) &&
      options->section_seconds > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("not understood: ", name, " ", value));
}

void ChooseTheRest(ReclaimOptions* options) {
  if (options->device.empty()) {
    options->device =
        device::ProbeCuda().gpus.empty() ? "host:512MiB" : "cuda:0";
  }
  const bool on_host = absl::StartsWith(options->device, "host:");
  if (options->bytes == 0)
    options->bytes = on_host ? 64 * kOptionMiB : 8 * kOptionGiB;
  if (options->large_bytes == 0) options->large_bytes = 100 * kOptionGiB;
  if (options->host_pool.empty())
    options->host_pool = on_host ? "512MiB" : "16GiB";
}

}  // namespace

const char kReclaimUsage[] =
    "usage: reclaim_bench [--device cuda:0|GPU-UUID|host:SIZE] [--rounds 30] "
    "[--json]\n"
    "What it costs to take a parked tenant's memory and to bring it back, "
    "through a\n"
    "gmbd of its own, beside plain copies and allocations in the same run.\n"
    "  --device DEVICE     [the first GPU, else host:512MiB, whose rates stand "
    "for nothing]\n"
    "  --bytes SIZE        moved each round [8GiB; host: 64MiB]\n"
    "  --host-pool SIZE    for what is evicted, page-locked before the first "
    "round\n"
    "                      [16GiB; host: 512MiB]\n"
    "  --pool AMOUNT       the device pool [gmbd's default]\n"
    "  --large-bytes SIZE  parked in leases of 256 MiB and evicted for one "
    "request [100GiB];\n"
    "                      skipped where the pools are smaller\n"
    "  --only A,B          of the sections "
    "moves,small,backed,neighbours,large [all]\n"
    "  --section-seconds N after these no round begins, but for the first "
    "three "
    "[600]\n"
    "  --log FILE          keeps gmbd's log [thrown away]\n";

bool ReclaimOptions::Wants(const std::string& section) const {
  const std::vector<std::string> wanted = absl::StrSplit(sections, ',');
  return std::find(wanted.begin(), wanted.end(), section) != wanted.end();
}

absl::StatusOr<ReclaimOptions> ParseReclaimOptions(int argc, char** argv) {
  ReclaimOptions options;
  options.sections = kAllSections;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--json" || name == "--help") {
      (name == "--json" ? options.json : options.help) = true;
      continue;
    }
    const std::string value = i + 1 < argc ? argv[++i] : "";
    if (absl::Status set = Set(name, value, &options); !set.ok()) return set;
  }
  if (!options.help) ChooseTheRest(&options);
  return options;
}

}  // namespace gmb::bench
