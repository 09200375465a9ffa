#include "analysis/categories/tensor_facts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>

#include "analysis/examination/alive.h"

namespace gmt::analysis {
namespace {

constexpr size_t kLargest = 8;
// A shorter sequence too often has the same length as another dimension.
constexpr uint64_t kShortestSequence = 16;
// Minimum share of the activations, in percent, that each type must have to be reported.
constexpr uint64_t kMixedPercent = 10;

using Sizes = std::vector<uint64_t>;

bool IsHalf(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }
bool IsInteger(std::string_view dtype) { return dtype == "int64" || dtype == "int32"; }

bool IsOfBatch(Category category) {
  return category == Category::kActivations || category == Category::kRecomputed ||
         category == Category::kTemporaries;
}

class FactsFinder {
 public:
  FactsFinder(const Examination& examination, const Categories& categories, int32_t device,
              Step step)
      : examination_(examination),
        trace_(examination.trace()),
        definitions_(examination.definitions()),
        categories_(categories),
        roles_(trace_, step) {
    facts_.device = device;
    for (const RowId row : HeldAfter(trace_, step)) {
      if (trace_.rows.device[row] == device && trace_.rows.Shape(row) != 0) held_.push_back(row);
    }
  }

  std::optional<TensorFacts> Find() && {
    if (held_.empty()) return std::nullopt;
    FindBatch();
    FindMasterWeights();
    FindMixedActivations();
    return std::move(facts_);
  }

 private:
  struct Layout {
    std::string dtype, shape;
    Sizes sizes;
  };

  const Layout& LayoutOf(RowId row) {
    const std::pair key(trace_.rows.Dtype(row), trace_.rows.Shape(row));
    const auto [found, is_new] = layouts_.try_emplace(key);
    if (is_new) {
      found->second.dtype = definitions_.string(key.first);
      found->second.shape = definitions_.string(key.second);
      found->second.sizes = ParseShape(found->second.shape);
    }
    return found->second;
  }
  Category CategoryOf(RowId row) const { return categories_.Of(row).category; }

  std::string NodeOf(RowId row) const {
    const HeldRoles held = roles_.Of(row);
    return held.nodes.empty() ? "" : std::string(definitions_.string(held.nodes.back().name));
  }

  // ---- The batch

  // Token ids are inputs, or are saved by an embedding. Otherwise the largest inputs are the
  // samples.
  void FindBatch() {
    std::map<std::pair<std::string, std::string>, std::pair<uint64_t, const Layout*>> tokens,
        others;
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      const bool is_input = CategoryOf(row) == Category::kInputs;
      const bool is_ids = IsInteger(layout.dtype) && layout.sizes.size() == 2 &&
                          (is_input || NodeOf(row).starts_with("Embedding"));
      if (!is_ids && (!is_input || layout.sizes.size() < 2)) continue;
      auto& [bytes, known] = (is_ids ? tokens : others)[{layout.dtype, layout.shape}];
      bytes += trace_.rows.size[row];
      known = &layout;
    }
    const auto& candidates = tokens.empty() ? others : tokens;
    const auto best = std::max_element(
        candidates.begin(), candidates.end(),
        [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
    if (best == candidates.end()) return;
    const Layout& input = *best->second.second;
    BatchFacts batch;
    batch.input_dtype = input.dtype;
    batch.input_shape = input.shape;
    batch.samples = input.sizes[0];
    const bool has_sequence = !tokens.empty() || input.sizes.size() == 3;
    if (has_sequence && input.sizes[1] > 1) batch.tokens = input.sizes[1];
    if (batch.samples == 0) return;
    AddBatchBytes(batch);
    // Language models receive all tokens but the last, and compare with all but the first.
    BatchFacts shifted = batch;
    if (batch.tokens > 2) {
      --shifted.tokens;
      AddBatchBytes(shifted);
    }
    if (shifted.batch_bytes > batch.batch_bytes) batch = std::move(shifted);
    if (batch.batch_bytes > 0) facts_.batch = std::move(batch);
  }

  static bool HasBatch(const Sizes& sizes, const BatchFacts& batch) {
    if (sizes.empty()) return false;
    const uint64_t all = batch.samples * std::max<uint64_t>(batch.tokens, 1);
    const uint64_t first = sizes.front();
    if (batch.samples == 1 && batch.tokens == 0) return true;
    if (first == batch.samples && batch.samples > 1) return true;
    if (first == all) return true;  // samples and tokens merged into one dimension
    // Heads and samples merged: a product of matrices has three dimensions.
    const bool has_sequence =
        batch.tokens > 0 && std::find(sizes.begin() + 1, sizes.end(), batch.tokens) != sizes.end();
    return first % batch.samples == 0 && has_sequence;
  }

  static bool IsSquare(const Sizes& sizes, const BatchFacts& batch) {
    return batch.tokens >= kShortestSequence &&
           std::count(sizes.begin(), sizes.end(), batch.tokens) >= 2;
  }

  void AddBatchBytes(BatchFacts& batch) {
    batch.batch_bytes = batch.square_bytes = 0;
    std::map<std::tuple<uint32_t, uint32_t, std::string>, ShapedMemory> square;
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      if (!IsOfBatch(CategoryOf(row)) || !HasBatch(layout.sizes, batch)) continue;
      batch.batch_bytes += trace_.rows.size[row];
      if (!IsSquare(layout.sizes, batch)) continue;
      batch.square_bytes += trace_.rows.size[row];
      AddTo(square, row);
    }
    batch.square = Largest(square);
    if (batch.square_bytes > 0) batch.certain = ParametersWithSize(batch.tokens) < 2;
  }

  // The position table contains the longest sequence in its shape; no other parameter does.
  uint64_t ParametersWithSize(uint64_t size) {
    uint64_t count = 0;
    for (const RowId row : held_) {
      if (CategoryOf(row) != Category::kParameters) continue;
      const Sizes& sizes = LayoutOf(row).sizes;
      if (std::find(sizes.begin(), sizes.end(), size) != sizes.end()) ++count;
    }
    return count;
  }

  // ---- Types

  void FindMasterWeights() {
    struct OfShape {
      uint64_t half = 0, half_bytes = 0, full = 0, full_bytes = 0;
    };
    std::map<std::string, OfShape> by_shape;
    std::string dtype;
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      const Category category = CategoryOf(row);
      if (category == Category::kParameters && IsHalf(layout.dtype)) {
        dtype = layout.dtype;
        ++by_shape[layout.shape].half;
        by_shape[layout.shape].half_bytes += trace_.rows.size[row];
      } else if (layout.dtype == "float32" &&
                 (category == Category::kParameters || category == Category::kOptimizerState)) {
        ++by_shape[layout.shape].full;
        by_shape[layout.shape].full_bytes += trace_.rows.size[row];
      }
    }
    MasterWeights master;
    master.dtype = dtype;
    for (const auto& [shape, of] : by_shape) {
      master.parameter_bytes += of.half_bytes;
      if (of.half == 0 || of.full < 3 * of.half) continue;
      master.master_bytes += of.full_bytes / of.full * of.half;
    }
    if (master.master_bytes * 2 >= master.parameter_bytes && master.master_bytes > 0)
      facts_.master = std::move(master);
  }

  void FindMixedActivations() {
    MixedActivations mixed;
    std::map<std::tuple<uint32_t, uint32_t, std::string>, ShapedMemory> full;
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      if (CategoryOf(row) != Category::kActivations) continue;
      if (IsHalf(layout.dtype)) {
        mixed.half_dtype = layout.dtype;
        mixed.half_bytes += trace_.rows.size[row];
      } else if (layout.dtype == "float32") {
        mixed.float_bytes += trace_.rows.size[row];
        AddTo(full, row);
      }
    }
    const uint64_t all = mixed.half_bytes + mixed.float_bytes;
    const uint64_t lesser = std::min(mixed.half_bytes, mixed.float_bytes);
    if (lesser == 0 || lesser < all / 100 * kMixedPercent) return;
    mixed.largest = Largest(full);
    facts_.mixed = std::move(mixed);
  }

  template <typename Sums>
  void AddTo(Sums& sums, RowId row) {
    const Layout& layout = LayoutOf(row);
    const uint32_t stack = trace_.rows.stack[row], forward = trace_.rows.forward_stack[row];
    ShapedMemory& sum = sums[{stack, forward, layout.dtype + layout.shape}];
    if (sum.count == 0) {
      const FrameText* own = examination_.stacks().Own(forward != 0 ? forward : stack);
      sum = {stack,
             forward,
             layout.dtype,
             layout.shape,
             NodeOf(row),
             own == nullptr ? "" : own->Place(),
             0,
             0};
    }
    sum.bytes += trace_.rows.size[row];
    ++sum.count;
  }

  template <typename Sums>
  static std::vector<ShapedMemory> Largest(const Sums& sums) {
    std::vector<ShapedMemory> sorted;
    for (const auto& [key, sum] : sums) sorted.push_back(sum);
    std::stable_sort(
        sorted.begin(), sorted.end(),
        [](const ShapedMemory& a, const ShapedMemory& b) { return a.bytes > b.bytes; });
    if (sorted.size() > kLargest) sorted.resize(kLargest);
    return sorted;
  }

  const Examination& examination_;
  const Trace& trace_;
  const format::Definitions& definitions_;
  const Categories& categories_;
  const RolesAt roles_;
  std::vector<RowId> held_;  // on the device, with a type and a shape
  std::map<std::pair<uint32_t, uint32_t>, Layout> layouts_;
  TensorFacts facts_;
};

}  // namespace

std::vector<uint64_t> ParseShape(std::string_view text) {
  std::vector<uint64_t> sizes;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    uint64_t size = 0;
    const auto [after, error] = std::from_chars(at, end, size);
    if (error == std::errc()) sizes.push_back(size);
    at = std::max(at, after);
  }
  return sizes;
}

std::optional<TensorFacts> FindTensorFacts(const Examination& examination,
                                           const Categories& categories, int32_t device,
                                           Step step) {
  return FactsFinder(examination, categories, device, step).Find();
}

}  // namespace gmt::analysis
