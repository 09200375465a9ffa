#include "interop/profile/stack_profile.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "interop/profile/layer_selection.h"

namespace gmt::interop {

using analysis::FrameText;
using analysis::RowId;
using analysis::Rows;

absl::StatusOr<StackProfile> MakeStackProfile(const analysis::Examination& examination,
                                              const ProfileSelection& selection) {
  const analysis::Trace& trace = examination.trace();
  auto layers = LayerSelection::Make(trace, selection.device, selection.heap);
  if (!layers.ok()) return layers.status();
  StackProfile profile;
  profile.of_blocks = layers->of_blocks();
  profile.lacks_allocations_before = trace.before != nullptr;
  for (const int32_t device : layers->devices()) {
    auto instant = InstantOn(examination, selection.at, device);
    if (!instant.ok()) return instant.status();
    profile.instants.emplace(device, *std::move(instant));
  }
  std::map<std::tuple<int32_t, uint32_t, uint32_t>, StackProfile::Sample> sites;
  const Rows& rows = trace.rows;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (!layers->Selects(row)) continue;
    const analysis::Step at = profile.instants.at(rows.device[row]).step;
    if (rows.birth[row] > at) continue;
    StackProfile::Sample& sample = sites[{rows.device[row], rows.heap[row], rows.stack[row]}];
    const auto size = static_cast<int64_t>(rows.size[row]);
    ++sample.alloc_objects;
    sample.alloc_space += size;
    if (!rows.HeldAfter(row, at)) continue;
    ++sample.inuse_objects;
    sample.inuse_space += size;
  }
  for (auto& [site, sample] : sites) {
    std::tie(sample.device, sample.heap, sample.stack) = site;
    profile.samples.push_back(sample);
  }
  return profile;
}

std::vector<FrameText> ProfileFrames(const analysis::Examination& examination, uint32_t stack) {
  const std::vector<FrameText>& frames = examination.stacks().Frames(stack);
  if (frames.empty()) {
    FrameText none;
    none.function = "(no stack)";
    return {none};
  }
  return {frames.begin() + std::max(analysis::LeadingFrame(frames), 0), frames.end()};
}

}  // namespace gmt::interop
