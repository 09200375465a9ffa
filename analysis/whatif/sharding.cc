// What a program would hold if its model were divided among several GPUs (changes.h), as
// torch.distributed.fsdp.fully_shard(layer) does for each layer and for the rest of the model.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "analysis/whatif/changes.h"

namespace gmt::analysis {
namespace {

// Layers that are gathered at the same time: the one in use, the one fetched ahead of it, and the
// buffer into which it was gathered. A model of two layers has nothing to fetch after the second.
constexpr int kGatheredLayers = 3;
// What a backward pass has in addition: gradients of one layer before they are divided.
constexpr int kLayersOfGradients = 1;

}  // namespace

// Divides the model into the layers that have most of its parameters: inner ones lack those beside
// them. The model itself is no layer, even if it seems to run several times in a pass.
Changes::Gathered Changes::FindGathered() const {
  // Parameters by the size that was requested: blocks of equal ones may differ.
  std::map<uint64_t, uint64_t> counts;
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) == Category::kParameters)
      ++counts[rows_.Requested(row).value_or(rows_.size[row])];
  });
  Gathered best;
  for (const auto& [size, count] : counts) best.rest += size * count;
  const uint64_t all = best.rest;
  for (const Layers& kind : KindsOfLayers()) {
    if (kind.path == kind.name()) continue;
    const uint64_t layers = std::max<uint64_t>(kind.most_in_a_pass, 1);
    Gathered gathered{.rest = all, .layers = &kind};
    for (const auto& [size, count] : counts) gathered.layer += size * (count / layers);
    gathered.rest -= gathered.layer * layers;
    if (gathered.rest < best.rest) best = gathered;
  }
  return best;
}

// Adds the layers that are gathered while others compute: in a forward pass from the first to the
// last, in its backward pass from the last one's on. The loss is computed without any.
void Changes::GatherLayers(const Gathered& gathered, ProgramChange& change) const {
  const auto add = [&](int layers, Step begin, Step end) {
    for (int i = 0; i < layers && begin < end; ++i) change.Add({begin, end, gathered.layer});
  };
  if (gathered.layers == nullptr) {
    // Gathered as a whole, and so are the gradients before they are divided.
    for (const PhaseSpan& span : spans_.spans) {
      if (span.phase == Phase::kBackward) change.Add({span.begin, span.end, gathered.rest});
    }
    return;
  }
  const int at_once =
      std::min<int>(kGatheredLayers, static_cast<int>(gathered.layers->most_in_a_pass));
  const std::vector<LayerRun>& runs = gathered.layers->runs;
  auto run = runs.begin();
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase != Phase::kBackward) continue;
    const auto first = run;
    while (run != runs.end() && run->end <= span.begin) ++run;
    if (run == first) continue;  // the second backward pass of a forward pass
    const LayerRun& last = *std::prev(run);
    add(at_once, first->begin, last.end);
    Step used = span.end;  // by the last layer's backward pass
    for (const RowId row : last.activations) {
      if (rows_.death[row] > span.begin) used = std::min(used, rows_.death[row]);
    }
    add(at_once + kLayersOfGradients, used, span.end);
  }
  if (run != runs.end()) add(at_once, run->begin, runs.back().end);
}

absl::Status Changes::Shard(uint64_t count, ProgramChange& change) const {
  const Gathered gathered = FindGathered();
  if (gathered.layer + gathered.rest == 0)
    return absl::FailedPreconditionError("no parameters are recorded");
  ForEachBlock([&](RowId row) {
    const Category category = CategoryOf(row);
    if (category == Category::kParameters || category == Category::kGradients ||
        category == Category::kOptimizerState || IsOfOptimizerStep(row))
      change.Resize(row, [&](uint64_t bytes) { return PartOf(bytes, count); });
  });
  GatherLayers(gathered, change);
  // What is in no layer stays gathered for the backward pass. The optimizer updates parts.
  Step begin = 0;
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase != Phase::kOptimizer) continue;
    if (begin < span.begin) change.Add({begin, span.begin, gathered.rest});
    begin = span.end;
  }
  change.Add({begin, kNever, gathered.rest});
  return absl::OkStatus();
}

}  // namespace gmt::analysis
