#include "analysis/categories/tensor_facts.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <set>
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
// Language models compare all tokens but the last with all but the first.
constexpr uint64_t kTokensApart = 1;
// Minimum share of the activations, in percent, that each type must have to be reported.
constexpr uint64_t kMixedPercent = 10;
// Minimum share of a pass, in percent, that a batch must explain to be known.
constexpr uint64_t kMaxPercent = 90;
// ... with its size as a dimension, not as a divisor of one.
constexpr uint64_t kExactPercent = 25;

using Sizes = std::vector<uint64_t>;

bool IsHalf(std::string_view dtype) { return dtype == "float16" || dtype == "bfloat16"; }
bool IsInteger(std::string_view dtype) { return dtype == "int64" || dtype == "int32"; }

bool IsOfPass(Category category) {
  return category == Category::kActivations || category == Category::kRecomputed ||
         category == Category::kTemporaries;
}

bool IsMost(uint64_t part, uint64_t whole) { return part >= whole / 100 * kMaxPercent; }

// How many bytes of a pass a batch explains.
struct BatchFit {
  BatchFacts batch;
  uint64_t pass_bytes = 0;
  uint64_t exact_bytes = 0;     // with the samples as a dimension, or samples times tokens
  uint64_t sequence_bytes = 0;  // with the tokens in the shape, or one less or more
  uint64_t with_tokens = 0;     // the number of tensors with exactly the tokens in their shape
  // Whether the second dimension of the inputs is the sequence if there is one. It may be
  // features: then no layer merges it with the samples.
  bool is_sequence = false;

  bool IsGood() const {
    return exact_bytes > batch.batch_bytes / 100 * kExactPercent &&
           IsMost(batch.batch_bytes, pass_bytes) &&
           (batch.tokens == 0 || (is_sequence && IsMost(sequence_bytes, batch.batch_bytes)));
  }
  auto Rank() const {
    return std::tuple(exact_bytes, sequence_bytes, with_tokens, batch.batch_bytes);
  }
};

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

  void FindPass() {
    for (const RowId row : held_) {
      if (CategoryOf(row) != Category::kParameters) continue;
      const Sizes& sizes = LayoutOf(row).sizes;
      shapes_of_parameters_.insert(sizes);
      shapes_of_parameters_.emplace(sizes.rbegin(), sizes.rend());
    }
    for (const RowId row : held_) {
      if (!IsOfPass(CategoryOf(row))) continue;
      auto& [bytes, count] = pass_[&LayoutOf(row)];
      bytes += trace_.rows.size[row];
      ++count;
    }
  }

  // What has the shape of a parameter is a cast of it or its gradient.
  bool IsOfParameter(const Layout& layout) const {
    return shapes_of_parameters_.contains(layout.sizes);
  }

  // Every input proposes a batch, and so does what an embedding saves: token ids. The right one is
  // that whose size is a dimension of most tensors of the pass, by bytes.
  void FindBatch() {
    std::map<uint32_t, const Layout*> proposals;  // by shape
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      const bool is_input = CategoryOf(row) == Category::kInputs ||
                            (IsInteger(layout.dtype) && NodeOf(row).starts_with("Embedding"));
      if (is_input && layout.sizes.size() >= 2) proposals.emplace(trace_.rows.Shape(row), &layout);
    }
    FindPass();
    std::optional<BatchFit> best;
    for (const auto& [shape, layout] : proposals) {
      for (const uint64_t tokens : PossibleTokens(*layout)) {
        BatchFit fit = FitOf(*layout, tokens);
        if (fit.IsGood() && (!best || fit.Rank() > best->Rank())) best = std::move(fit);
      }
    }
    if (!best) return;
    AddSquare(best->batch);
    facts_.batch = std::move(best->batch);
  }

  static bool IsIds(const Layout& input) {
    return IsInteger(input.dtype) && input.sizes.size() == 2;
  }

  // Language models receive all tokens but the last, and compare with all but the first. 0: no
  // sequence.
  static std::vector<uint64_t> PossibleTokens(const Layout& input) {
    const uint64_t length = input.sizes[1];
    if (IsIds(input) && length > 2) return {length, length - 1, 0};
    if (input.sizes.size() == 3 && length > 1) return {length, 0};
    return {0};
  }

  BatchFit FitOf(const Layout& input, uint64_t tokens) {
    BatchFit fit;
    fit.batch.input_dtype = input.dtype;
    fit.batch.input_shape = input.shape;
    fit.batch.samples = input.sizes[0];
    fit.batch.tokens = tokens;
    fit.is_sequence = IsIds(input);
    if (fit.batch.samples == 0) return fit;
    const uint64_t slack = SlackFor(tokens);
    for (const auto& [layout, held] : pass_) {
      const Sizes& sizes = layout->sizes;
      const auto& [bytes, count] = held;
      const auto dimensions = DimensionsOf(sizes, fit.batch.samples, tokens, slack);
      const bool is_of_parameter = IsOfParameter(*layout);
      const bool is_merged = Has(dimensions, Dimension::kBoth);
      const bool is_exact = is_merged || Has(dimensions, Dimension::kSamples);
      const bool has_tokens = is_merged || Has(dimensions, Dimension::kTokens);
      // If both is possible, it remains unexplained.
      if (!is_of_parameter || is_exact) fit.pass_bytes += bytes;
      if (is_of_parameter) continue;
      if (is_exact) fit.exact_bytes += bytes;
      fit.is_sequence |= is_merged;
      if (has_tokens) fit.sequence_bytes += bytes;
      if (has_tokens && dimensions == DimensionsOf(sizes, fit.batch.samples, tokens))
        fit.with_tokens += count;
      if (IsOfBatch(dimensions)) fit.batch.batch_bytes += bytes;
    }
    return fit;
  }

  static bool Has(const std::vector<Dimension>& dimensions, Dimension wanted) {
    return std::find(dimensions.begin(), dimensions.end(), wanted) != dimensions.end();
  }

  static bool IsOfBatch(const std::vector<Dimension>& dimensions) {
    return std::any_of(dimensions.begin(), dimensions.end(),
                       [](Dimension dimension) { return dimension != Dimension::kOther; });
  }

  static bool IsSquare(const Sizes& sizes, const BatchFacts& batch) {
    return batch.tokens >= kShortestSequence &&
           std::count(sizes.begin(), sizes.end(), batch.tokens) >= 2;
  }

  void AddSquare(BatchFacts& batch) {
    std::map<std::tuple<uint32_t, uint32_t, std::string>, ShapedMemory> square;
    for (const RowId row : held_) {
      const Layout& layout = LayoutOf(row);
      if (!IsOfPass(CategoryOf(row)) || IsOfParameter(layout)) continue;
      if (!IsSquare(layout.sizes, batch)) continue;
      const auto dimensions = DimensionsOf(layout.sizes, batch.samples, batch.tokens);
      if (!Has(dimensions, Dimension::kTokens)) continue;
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
  // Bytes and number of activations and temporaries.
  std::map<const Layout*, std::pair<uint64_t, uint64_t>> pass_;
  std::set<Sizes> shapes_of_parameters_;
  std::map<std::pair<uint32_t, uint32_t>, Layout> layouts_;
  TensorFacts facts_;
};

}  // namespace

uint64_t SlackFor(uint64_t tokens) { return tokens >= kShortestSequence ? kTokensApart : 0; }

std::vector<Dimension> DimensionsOf(const std::vector<uint64_t>& sizes, uint64_t samples,
                                    uint64_t tokens, uint64_t slack) {
  std::vector<Dimension> dimensions(sizes.size(), Dimension::kOther);
  if (sizes.empty() || samples == 0) return dimensions;
  const auto is_tokens = [&](uint64_t size) {
    return tokens > 0 && size + slack >= tokens && size <= tokens + slack;
  };
  const auto mark_tokens = [&](size_t from) {
    bool has_tokens = false;
    for (size_t i = from; i < sizes.size(); ++i) {
      if (dimensions[i] != Dimension::kOther || !is_tokens(sizes[i])) continue;
      dimensions[i] = Dimension::kTokens;
      has_tokens = true;
    }
    return has_tokens;
  };
  const uint64_t front = sizes.front();
  if (front % samples == 0 && is_tokens(front / samples)) {
    dimensions[0] = Dimension::kBoth;
    mark_tokens(1);
    return dimensions;
  }
  if (front == samples && (sizes.size() > 1 || samples > 1)) {
    dimensions[0] = Dimension::kSamples;
    mark_tokens(1);
    return dimensions;
  }
  const auto inner = std::find(sizes.begin() + 1, sizes.end(), samples);
  if (inner != sizes.end()) {
    dimensions[static_cast<size_t>(inner - sizes.begin())] = Dimension::kSamples;
    if (mark_tokens(0)) return dimensions;
    dimensions.assign(sizes.size(), Dimension::kOther);  // by chance
  }
  if (front % samples != 0) return dimensions;
  const bool has_tokens = mark_tokens(1);
  if (samples > 1 || has_tokens) {
    const bool has_both = tokens > 0 && !has_tokens && front % (samples * tokens) == 0;
    dimensions[0] = has_both ? Dimension::kMultipleOfBoth : Dimension::kMultipleOfSamples;
  }
  return dimensions;
}

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
