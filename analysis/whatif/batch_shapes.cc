#include "analysis/whatif/batch_shapes.h"

#include <algorithm>
#include <cmath>

namespace gmt::analysis {
namespace {

// What FindOtherSamples() takes for the number of samples: the first dimension of tensors with at
// least so many dimensions, if this share of their bytes has it.
constexpr size_t kMinDimensions = 3;
constexpr double kMaxBytes = 0.7;

}  // namespace

BatchShapes::BatchShapes(const Examination& examination, const Categories& categories,
                         const PhaseSpans& spans, int32_t device)
    : examination_(examination), rows_(examination.trace().rows) {
  if (!FindBatch(categories, spans, device)) return;
  FindSizes(categories, device);
  FindPlaces(device);
}

bool BatchShapes::FindBatch(const Categories& categories, const PhaseSpans& spans, int32_t device) {
  const auto totals = examination_.replay().devices().find(device);
  if (totals == examination_.replay().devices().end()) return false;
  const Step peak = totals->second.allocated.peak_step;
  pass_.end = examination_.trace().last_step();
  for (const Cycle& cycle : examination_.cycles().cycles) {
    if (cycle.begin < peak && peak <= cycle.end) pass_ = cycle;
    // A peak after the last step is in one that did not end.
    if (cycle.end < peak) pass_.begin = cycle.end;
  }
  // The forward and backward pass of the peak: a step may have several, with inputs of other sizes.
  // Most activations are held when its backward pass begins.
  std::vector<Step> moments;
  const Step begin = pass_.begin, end = pass_.end;
  for (const PhaseSpan& span : spans.spans) {
    if (span.phase != Phase::kBackward || span.begin < begin || span.begin >= end) continue;
    if (!moments.empty()) pass_.begin = pass_.end;
    pass_.end = span.end;
    moments = {span.begin};
    if (span.end >= peak) break;
  }
  moments.push_back(peak);
  for (const Step moment : moments) {
    const auto facts = FindTensorFacts(examination_, categories, device, moment);
    if (facts) batch_ = facts->batch;
    if (batch_) return true;
  }
  return false;
}

void BatchShapes::FindSizes(const Categories& categories, int32_t device) {
  uint64_t with_tokens = 0;
  for (RowId row = 0; row < rows_.count(); ++row) {
    if (rows_.device[row] != device || rows_.Shape(row) == 0) continue;
    const Category category = categories.Of(row).category;
    const std::vector<uint64_t>& sizes = SizesOf(row);
    if (category == Category::kInputs && sizes.size() >= 2) other_samples_.insert(sizes.front());
    if (category != Category::kParameters) continue;
    parameters_.insert(sizes);
    parameters_.emplace(sizes.rbegin(), sizes.rend());
    with_tokens += std::find(sizes.begin(), sizes.end(), batch_->tokens) != sizes.end();
  }
  // A table of positions contains the longest sequence in its shape.
  is_as_wide_as_long_ = with_tokens >= 2;
  if (batch_->tokens == 0) FindOtherSamples(device);
}

// An evaluation may make its inputs itself, so that none are known as inputs: most of its memory
// has their number of samples as the first dimension.
void BatchShapes::FindOtherSamples(int32_t device) {
  absl::flat_hash_map<uint64_t, uint64_t> bytes_by_first;
  uint64_t bytes = 0;
  for (RowId row = 0; row < rows_.count(); ++row) {
    if (rows_.device[row] != device || rows_.Shape(row) == 0 || IsInPass(rows_.birth[row]))
      continue;
    const std::vector<uint64_t>& sizes = SizesOf(row);
    if (sizes.size() < kMinDimensions || sizes.front() == batch_->samples ||
        parameters_.contains(sizes)) {
      continue;
    }
    bytes += rows_.size[row];
    bytes_by_first[sizes.front()] += rows_.size[row];
  }
  for (const auto& [first, of_first] : bytes_by_first) {
    if (static_cast<double>(of_first) >= kMaxBytes * static_cast<double>(bytes))
      other_samples_.insert(first);
  }
}

void BatchShapes::FindPlaces(int32_t device) {
  absl::flat_hash_set<Place> ambiguous;
  for (RowId row = 0; row < rows_.count(); ++row) {
    if (rows_.device[row] != device || rows_.Shape(row) == 0 || !IsInPass(rows_.birth[row]))
      continue;
    const std::vector<uint64_t>& sizes = SizesOf(row);
    const Place place{rows_.stack[row], rows_.forward_stack[row], sizes.size()};
    const std::vector<Dimension> dimensions = ByValue(sizes);
    const auto [known, is_new] = places_.try_emplace(place, dimensions);
    if (!is_new && known->second != dimensions) ambiguous.insert(place);
  }
  for (const Place& place : ambiguous) places_.erase(place);
}

const std::vector<uint64_t>& BatchShapes::SizesOf(RowId row) const {
  const uint32_t shape = rows_.Shape(row);
  const auto [sizes, is_new] = sizes_.try_emplace(shape);
  if (is_new) sizes->second = ParseShape(examination_.definitions().string(shape));
  return sizes->second;
}

std::vector<Dimension> BatchShapes::ByValue(const std::vector<uint64_t>& sizes) const {
  const uint64_t tokens = batch_->tokens, slack = SlackFor(batch_->tokens);
  std::vector<Dimension> dimensions = DimensionsOf(sizes, batch_->samples, tokens, slack);
  const auto count = [&](Dimension wanted) {
    return std::count(dimensions.begin(), dimensions.end(), wanted);
  };
  const auto others = static_cast<size_t>(count(Dimension::kOther));
  // Another number of samples: an evaluation, or a concatenation of batches.
  if (others == sizes.size() && sizes.size() >= 2 && !parameters_.contains(sizes)) {
    dimensions = DimensionsOf(sizes, sizes.front(), tokens, slack);
    const bool is_sequence = slack > 0 && sizes.size() >= 3 && count(Dimension::kTokens) > 0;
    if (!is_sequence && !other_samples_.contains(sizes.front()))
      dimensions.assign(sizes.size(), Dimension::kOther);
    return dimensions;
  }
  const bool is_only_multiple =
      others + 1 == sizes.size() && dimensions.front() == Dimension::kMultipleOfSamples;
  if (is_only_multiple && (sizes.size() == 1 || parameters_.contains(sizes)))
    dimensions.front() = Dimension::kOther;
  if (is_as_wide_as_long_) {
    // [samples, tokens, features], [samples * tokens, features]
    const bool is_merged = count(Dimension::kBoth) > 0;
    if (is_merged || (sizes.size() == 3 && count(Dimension::kTokens) == 2 &&
                      dimensions.front() == Dimension::kSamples)) {
      std::replace(dimensions.begin() + (is_merged ? 1 : 2), dimensions.end(), Dimension::kTokens,
                   Dimension::kOther);
    }
  }
  return dimensions;
}

double BatchShapes::FactorOf(RowId row, const InputChange& inputs) const {
  const std::vector<uint64_t>& sizes = SizesOf(row);
  const auto known = IsInPass(rows_.birth[row])
                         ? places_.end()
                         : places_.find({rows_.stack[row], rows_.forward_stack[row], sizes.size()});
  const std::vector<Dimension> dimensions = known == places_.end() ? ByValue(sizes) : known->second;
  const auto longer = [&](uint64_t tokens) {
    if (tokens == 0) return inputs.tokens;
    double length = std::round(static_cast<double>(tokens) * inputs.tokens);
    if (inputs.bucket > 0) {
      const double bucket = static_cast<double>(inputs.bucket);
      length = std::ceil(length / bucket) * bucket;
    }
    return length / static_cast<double>(tokens);
  };
  double factor = 1;
  for (size_t i = 0; i < dimensions.size(); ++i) {
    switch (dimensions[i]) {
      case Dimension::kOther:
        break;
      case Dimension::kSamples:
      case Dimension::kMultipleOfSamples:
        factor *= inputs.samples;
        break;
      case Dimension::kTokens:
        factor *= longer(sizes[i]);
        break;
      case Dimension::kBoth:
        factor *= inputs.samples * longer(sizes[i] / batch_->samples);
        break;
      case Dimension::kMultipleOfBoth:
        factor *= inputs.samples * longer(batch_->tokens);
        break;
    }
  }
  return factor;
}

}  // namespace gmt::analysis
