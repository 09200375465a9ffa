// What a program would hold if torch.autocast computed its forward pass and loss in bfloat16
// (changes.h). docs/advise.md has the rules.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/whatif/autocast.h"
#include "analysis/whatif/changes.h"

namespace gmt::analysis {
namespace {

uint64_t Half(uint64_t bytes) { return PartOf(bytes, 2); }

}  // namespace

// Halves the float32 temporaries in which products, and the logarithm in cross_entropy(), compute
// the gradients of their inputs. Returns when the latter begin, in order.
std::vector<Step> Changes::HalveGradientsOfProducts(
    const absl::flat_hash_map<RowId, Savers>& savers, ProgramChange& change) const {
  const bool has_cross_entropy = std::any_of(savers.begin(), savers.end(), [](const auto& saved) {
    return saved.second.is_log_softmax && saved.second.is_loss;
  });
  std::vector<Step> logarithms;
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) != Category::kTemporaries || !has_types_ || !IsFloat(row)) return;
    const PhaseSpan* span = SpanAt(rows_.birth[row]);
    if (span == nullptr || span->phase != Phase::kBackward) return;
    const FrameText* node = examination_.stacks().Own(rows_.stack[row]);
    if (node == nullptr) return;
    const std::string name = node->Name();
    const bool is_logarithm = has_cross_entropy && IsLogSoftmax(name);
    if (is_logarithm) logarithms.push_back(rows_.birth[row]);
    if (is_logarithm || IsComputedInHalf(name)) change.Resize(row, Half);
  });
  std::sort(logarithms.begin(), logarithms.end());
  return logarithms;
}

absl::Status Changes::UseHalfPrecision(ProgramChange& change) const {
  uint64_t full = 0, half = 0;
  const auto is_saved = [&](RowId row) {
    return CategoryOf(row) == Category::kActivations || CategoryOf(row) == Category::kRecomputed;
  };
  ForEachBlock([&](RowId row) {
    if (is_saved(row)) (IsFloat(row) ? full : half) += rows_.size[row];
  });
  if (full == 0)
    return NotApplicable(half == 0 ? "no activations are recorded" : "no activation is float32");
  if (has_types_ && half > full / 4) {
    ForEachBlock([&](RowId row) {
      const std::string_view type = examination_.definitions().string(rows_.Dtype(row));
      if (is_saved(row) && !IsFloat(row) && type.find("float16") == std::string_view::npos)
        half -= rows_.size[row];
    });
    if (half > full / 4) return NotApplicable("activations are in half precision already");
  }
  const absl::flat_hash_map<RowId, Savers> savers = FindSavers(trace_, examination_.definitions());
  const std::vector<Step> losses_done = HalveGradientsOfProducts(savers, change);
  ForEachBlock([&](RowId row) {
    if (!is_saved(row) || !IsFloat(row)) return;
    const auto found = savers.find(row);
    const Savers by = found == savers.end() ? Savers{} : found->second;
    // cross_entropy() computes the logarithm in the type of its input, and the loss from a copy in
    // float32, which ends before the logarithm's backward pass.
    if (by.is_log_softmax && by.is_loss) {
      for (const Holding& holding : change.Of(row)) {
        const auto done = std::upper_bound(losses_done.begin(), losses_done.end(), holding.begin);
        const Step end = done == losses_done.end() ? holding.end : std::min(holding.end, *done);
        change.Add({holding.begin, end, holding.bytes});
      }
      change.Resize(row, Half);
      return;
    }
    // Softmax and its logarithm save their result, and autocast casts their input.
    if (by.is_softmax) change.Add({rows_.birth[row], rows_.birth[row] + 1, Half(rows_.size[row])});
    if (!by.full) {
      change.Resize(row, Half);
    } else if (by.half) {  // the result in float32, and a copy that the next product saves
      for (const Holding& holding : change.Of(row))
        change.Add({holding.begin, holding.end, Half(holding.bytes)});
    }
  });
  // Weights are cast in the forward pass, and the copies are saved until the backward pass ends.
  uint64_t weights = 0;
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) == Category::kParameters && IsFloat(row) && IsMatrix(row))
      weights += Half(rows_.size[row]);
  });
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase == Phase::kBackward) change.Add({EndBefore(span.begin), span.end, weights});
  }
  return absl::OkStatus();
}

}  // namespace gmt::analysis
