#include "analysis/estimate/recorded.h"

#include <algorithm>

#include "analysis/categories/tensor_facts.h"

namespace gmt::analysis {
namespace {

PartGroup GroupOf(Category category) {
  switch (category) {
    case Category::kParameters:
      return PartGroup::kWeights;
    case Category::kGradients:
      return PartGroup::kGradients;
    case Category::kOptimizerState:
      return PartGroup::kOptimizerState;
    case Category::kActivations:
    case Category::kRecomputed:
    case Category::kTemporaries:
      return PartGroup::kComputation;
    case Category::kKvCache:
      return PartGroup::kKvCache;
    default:
      return PartGroup::kOther;
  }
}

PartGroup GroupOf(Part part) {
  switch (part) {
    case Part::kWeights:
      return PartGroup::kWeights;
    case Part::kGradients:
      return PartGroup::kGradients;
    case Part::kOptimizerState:
      return PartGroup::kOptimizerState;
    case Part::kKvCache:
      return PartGroup::kKvCache;
    case Part::kGathered:
    case Part::kBuckets:
      return PartGroup::kOther;
    default:
      return PartGroup::kComputation;
  }
}

}  // namespace

std::string_view NameOf(PartGroup group) {
  constexpr std::array<std::string_view, kPartGroups> kNames = {
      "weights", "gradients", "optimizer_state", "computation", "kv_cache", "other"};
  return kNames[static_cast<size_t>(group)];
}

Recorded RecordedFacts(const Examination& examination, const Categories& categories) {
  Recorded recorded;
  recorded.device = examination.MainDevice();
  const auto& devices = examination.replay().devices();
  const auto device = devices.find(recorded.device);
  if (device == devices.end()) return recorded;
  for (const GpuFacts& gpu : examination.trace().devices) {
    if (static_cast<int32_t>(gpu.index) != recorded.device) continue;
    recorded.gpu_name = gpu.name;
    recorded.gpu_bytes = gpu.total_bytes;
  }
  const Step peak = device->second.allocated.peak_step;
  for (const CategoryUse& use : CategoriesAt(examination, categories, recorded.device, peak)) {
    if (use.category == Category::kCache) continue;
    recorded.groups[static_cast<size_t>(GroupOf(use.category))] += use.bytes;
    recorded.peak += use.bytes;
  }
  const auto facts = FindTensorFacts(examination, categories, recorded.device, peak);
  if (facts && facts->batch) {
    recorded.batch = facts->batch->samples;
    recorded.length = facts->batch->tokens;
  }
  return recorded;
}

OptimizerKind OptimizerOf(const Recorded& recorded) {
  const auto weights =
      static_cast<double>(recorded.groups[static_cast<size_t>(PartGroup::kWeights)]);
  const auto state =
      static_cast<double>(recorded.groups[static_cast<size_t>(PartGroup::kOptimizerState)]);
  if (state > 1.5 * weights) return OptimizerKind::kAdamW;
  if (state > 0.75 * weights) return OptimizerKind::kSgdMomentum;
  return state > 0.25 * weights ? OptimizerKind::kAdam8Bit : OptimizerKind::kSgd;
}

GroupBytes GroupsOf(const MomentEstimate& moment) {
  GroupBytes groups{};
  for (const PartEstimate& part : moment.parts) {
    if (part.part == Part::kContext || part.part == Part::kCache) continue;
    groups[static_cast<size_t>(GroupOf(part.part))] += part.bytes;
  }
  return groups;
}

const MomentEstimate& NearestMoment(const Estimate& estimate, const Recorded& recorded) {
  const auto distance = [&](const MomentEstimate& moment) {
    const GroupBytes groups = GroupsOf(moment);
    uint64_t sum = 0;
    for (size_t i = 0; i < kPartGroups; ++i) {
      sum += std::max(groups[i], recorded.groups[i]) - std::min(groups[i], recorded.groups[i]);
    }
    return sum;
  };
  return *std::min_element(
      estimate.moments.begin(), estimate.moments.end(),
      [&](const MomentEstimate& a, const MomentEstimate& b) { return distance(a) < distance(b); });
}

}  // namespace gmt::analysis
