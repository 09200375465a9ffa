#include "analysis/estimate/gpus.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kDeviceMiB = uint64_t{1} << 20;

std::string Plain(std::string_view name) {
  return absl::StrReplaceAll(absl::AsciiStrToLower(std::string(name)),
                             {{"nvidia", ""}, {" ", ""}, {"-", ""}, {"_", ""}});
}

}  // namespace

// What torch.cuda.get_device_properties() and PyTorch's out-of-memory messages report.
const std::vector<Gpu>& KnownGpus() {
  static const auto& gpus = *new std::vector<Gpu>{
      {"RTX 3060 12 GB", 11'910 * kDeviceMiB}, {"T4 16 GB", 14'910 * kDeviceMiB},
      {"RTX 4080 16 GB", 15'960 * kDeviceMiB}, {"V100 16 GB", 16'150 * kDeviceMiB},
      {"A10 24 GB", 22'510 * kDeviceMiB},      {"L4 24 GB", 22'560 * kDeviceMiB},
      {"RTX 4090 24 GB", 24'200 * kDeviceMiB}, {"RTX 3090 24 GB", 24'250 * kDeviceMiB},
      {"RTX 5090 32 GB", 32'110 * kDeviceMiB}, {"V100 32 GB", 32'500 * kDeviceMiB},
      {"A100 40 GB", 40'330 * kDeviceMiB},     {"L40S 48 GB", 45'460 * kDeviceMiB},
      {"A40 48 GB", 45'470 * kDeviceMiB},      {"RTX A6000 48 GB", 48'650 * kDeviceMiB},
      {"A100 80 GB", 81'050 * kDeviceMiB},     {"H100 80 GB", 81'080 * kDeviceMiB},
      {"H200 141 GB", 143'160 * kDeviceMiB},   {"B200 180 GB", 182'640 * kDeviceMiB},
  };
  return gpus;
}

std::optional<Gpu> GpuNamed(std::string_view name) {
  const std::string wanted = Plain(name);
  if (wanted.empty()) return std::nullopt;
  for (const Gpu& gpu : KnownGpus()) {
    const std::string known = Plain(gpu.name);
    if (absl::StartsWith(known, wanted) || absl::StartsWith(known, "rtx" + wanted)) return gpu;
  }
  return std::nullopt;
}

}  // namespace gmt::analysis
