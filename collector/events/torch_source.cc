#include "collector/events/torch_source.h"

#include <algorithm>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace gmt::collector {
namespace {

constexpr char kReport[] = "_ZN3c1027reportMemoryUsageToProfilerE";
// The parameters in the manglings that are hooked (preload/torch/hook_table.inc).
constexpr const char* kHooked[] = {"PvlNS_6DeviceE", "PvlllNS_6DeviceE", "PvlmmNS_6DeviceE"};

std::string Setting(const SessionInfo& info, std::string_view name) {
  for (const auto& [key, value] : info.settings) {
    if (key == name) return value;
  }
  return "";
}

bool UsesDriversAllocator(const SessionInfo& info) {
  return absl::StrContains(Setting(info, "PYTORCH_CUDA_ALLOC_CONF"), "cudaMallocAsync") ||
         absl::StrContains(Setting(info, "PYTORCH_ALLOC_CONF"), "cudaMallocAsync");
}

// Whether the library calls the report function by a hooked name, according to its symbol names;
// true if the file cannot be read.
bool ReportsAsKnown(const std::string& library) {
  std::ifstream file(library, std::ios::binary);
  if (!file) return true;
  std::ostringstream bytes;
  bytes << file.rdbuf();
  const std::string text = std::move(bytes).str();
  return std::any_of(std::begin(kHooked), std::end(kHooked), [&](const char* parameters) {
    return absl::StrContains(text, absl::StrCat(kReport, parameters));
  });
}

}  // namespace

bool IsCachingAllocator(std::string_view path) {
  return path.substr(path.rfind('/') + 1).substr(0, kCachingAllocator.size()) == kCachingAllocator;
}

std::string TorchSource(const SessionInfo& info, const session::Options& options,
                        const std::string& said, const std::string& library) {
  if (!said.empty()) return said;
  if ((options.heaps & session::kPytorchHeap) == 0) return "off: not asked for";
  if (library.empty()) return "off: PyTorch's caching allocator requested no memory";
  if (UsesDriversAllocator(info))
    return "off: PyTorch's backend cudaMallocAsync has no blocks; its memory is the driver's";
  if (!Setting(info, "PYTORCH_NO_CUDA_MEMORY_CACHING").empty())
    return "off: PYTORCH_NO_CUDA_MEMORY_CACHING is set; each tensor is allocated from the driver";
  if (!ReportsAsKnown(library))
    return "off: this release of PyTorch reports its blocks in an unknown way";
  return "off: PyTorch reported no block";
}

}  // namespace gmt::collector
