#include "analysis/fragmentation/requester.h"

#include <string>

namespace gmt::analysis {

std::string_view AllocatorOption(const Trace& trace, std::string_view option) {
  for (const NamedText& setting : trace.settings) {
    const std::string_view name = setting.name, value = setting.value();
    if (name == option) return setting.is_json && value == "true" ? "True" : value;
    const size_t at = value.find(std::string(option) + ":");
    if (at == std::string_view::npos) continue;
    const std::string_view rest = value.substr(at + option.size() + 1);
    return rest.substr(0, rest.find(','));
  }
  return "";
}

uint64_t CapturesAt(const Trace& trace, int64_t t_ns) {
  uint64_t captures = 0;
  for (const Capture& capture : trace.captures) captures += capture.IsUnderWayAt(t_ns) ? 1 : 0;
  return captures;
}

Requester RequesterOf(const Trace& trace, const FailedAllocation& failed) {
  Requester requester;
  if (failed.heap <= kHostHeap) return requester;
  requester.stream = failed.stream;
  requester.bytes = failed.size;
  const bool is_whole = trace.unknowns.gaps == 0 && trace.unknowns.frees_lost == 0;
  requester.gave_up = trace.heaps[failed.heap] == "pytorch" && is_whole &&
                      CapturesAt(trace, failed.t_ns) == 0 &&
                      AllocatorOption(trace, "max_split_size_mb").empty();
  return requester;
}

}  // namespace gmt::analysis
