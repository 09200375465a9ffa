#include "collector/metrics/live_profile.h"

#include <map>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "analysis/stacks/frames.h"
#include "interop/pprof/pprof_writer.h"

namespace gmt::metrics {
namespace {

using interop::PprofValues;
using Key = std::tuple<uint32_t, uint32_t, bool>;  // heap, stack, whether the site is kOtherStack

void Add(const control::Copy& copy, int64_t sign, std::map<Key, PprofValues>* sites) {
  for (const control::SiteRow& row : *copy.sites) {
    PprofValues& values = (*sites)[{row.heap, row.stack, row.other}];
    values.alloc_objects += sign * static_cast<int64_t>(row.allocations);
    values.alloc_space += sign * static_cast<int64_t>(row.allocated_bytes);
    values.inuse_objects += sign * static_cast<int64_t>(row.live_count);
    values.inuse_space += sign * static_cast<int64_t>(row.live_bytes);
  }
}

bool IsNothing(const PprofValues& v) {
  return v.alloc_objects == 0 && v.alloc_space == 0 && v.inuse_objects == 0 && v.inuse_space == 0;
}

interop::PprofLabels LabelsOf(const control::Status& status, uint32_t heap) {
  if (heap >= static_cast<uint32_t>(status.heaps_size())) return {};
  const control::HeapStatus& known = status.heaps(static_cast<int>(heap));
  return {{"device", known.has_device() ? absl::StrCat("cuda:", known.device()) : "host"},
          {"kind", known.heap()}};
}

}  // namespace

absl::StatusOr<std::string> LiveProfile(const control::Copy& copy, const control::Copy* before,
                                        const format::Definitions& names, int64_t now_unix_ns) {
  std::map<Key, PprofValues> sites;
  Add(copy, 1, &sites);
  if (before != nullptr) Add(*before, -1, &sites);
  const int64_t duration = before == nullptr ? 0 : copy.status.t_ns() - before->status.t_ns();
  interop::PprofWriter writer(now_unix_ns, duration);
  for (const auto& [key, values] : sites) {
    if (IsNothing(values)) continue;
    const auto& [heap, stack, other] = key;
    std::vector<analysis::FrameText> frames = analysis::DescribeStack(names, stack);
    if (other) frames.emplace_back().function = "(stacks beyond the maximum number)";
    writer.Add(frames, values, LabelsOf(copy.status, heap));
  }
  writer.AddComment(
      "kind=driver is memory from the driver; kind=pytorch are blocks inside it: look at one of "
      "the two, "
      "not at their sum");
  return writer.Finish();
}

}  // namespace gmt::metrics
