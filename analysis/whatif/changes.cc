#include "analysis/whatif/changes.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/whatif/allocator_settings.h"
#include "format/event.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kUnitOfBlocks = 512;  // blocks of PyTorch are multiples of it
constexpr uint64_t kMinEightBitBytes = 4096 * sizeof(float), kNumbersPerScale = 256;
constexpr uint64_t kShortestSquare = 16;
constexpr size_t kKindsOfLayers = 8;  // the number that is compared

uint64_t Times(uint64_t bytes, double factor) {
  return RoundUp(static_cast<uint64_t>(std::ceil(static_cast<double>(bytes) * factor)),
                 kUnitOfBlocks);
}

}  // namespace

absl::Status NotApplicable(std::string_view why) {
  return absl::FailedPreconditionError({why.data(), why.size()});
}

uint64_t PartOf(uint64_t bytes, uint64_t divisor) {
  return std::min(bytes, RoundUp(bytes / divisor, kUnitOfBlocks));
}

uint64_t EightBitBytes(uint64_t state_bytes) {
  if (state_bytes < kMinEightBitBytes) return state_bytes;
  const uint64_t numbers = state_bytes / sizeof(float);
  return RoundUp(numbers, kUnitOfBlocks) +
         RoundUp(numbers / kNumbersPerScale * sizeof(float), kUnitOfBlocks);
}

Changes::Changes(const Examination& examination, const Categories& categories, int32_t device)
    : examination_(examination),
      trace_(examination.trace()),
      rows_(trace_.rows),
      categories_(categories),
      device_(device),
      births_(examination.kinds()),
      spans_(examination.phase_spans()) {
  std::vector<Step> ends = spans_.idle_optimizers;
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase == Phase::kOptimizer) ends.push_back(span.end);
  }
  std::sort(ends.begin(), ends.end());
  for (const Cycle& cycle : examination.cycles().cycles) {
    const auto after = std::upper_bound(ends.begin(), ends.end(), cycle.end);
    if (after != ends.begin() && *(after - 1) > cycle.begin)
      optimizer_ends_.push_back(*(after - 1));
  }
  has_types_ = std::any_of(rows_.dtype_column.begin(), rows_.dtype_column.end(),
                           [](uint32_t dtype) { return dtype != 0; });
}

bool Changes::IsBlock(RowId row) const {
  return rows_.device[row] == device_ && births_.Counts(row);
}

const PhaseSpan* Changes::SpanAt(Step birth) const {
  const auto span = std::lower_bound(spans_.spans.begin(), spans_.spans.end(), birth,
                                     [](const PhaseSpan& a, Step step) { return a.end < step; });
  return span != spans_.spans.end() && span->begin < birth ? &*span : nullptr;
}

Step Changes::EndBefore(Step step) const {
  Step end = 0;
  const auto span = std::lower_bound(spans_.spans.begin(), spans_.spans.end(), step,
                                     [](const PhaseSpan& a, Step s) { return a.end <= s; });
  if (span != spans_.spans.begin()) end = (span - 1)->end;
  const std::vector<Step>& idle = spans_.idle_optimizers;
  const auto after = std::upper_bound(idle.begin(), idle.end(), step);
  if (after != idle.begin()) end = std::max(end, *(after - 1));
  return end;
}

bool Changes::IsAnythingBorn(Step after, Step before) const {
  const Step last = std::min(before, trace_.last_step() + 1);
  for (Step step = after + 1; step < last; ++step) {
    const StepRecord record = trace_.steps[step - 1];
    if (record.row != kNoRow && !record.is_death && IsBlock(record.row)) return true;
  }
  return false;
}

bool Changes::IsOfOptimizerStep(RowId row) const {
  if (CategoryOf(row) != Category::kTemporaries) return false;
  const PhaseSpan* span = SpanAt(rows_.birth[row]);
  return span != nullptr && span->phase == Phase::kOptimizer;
}

bool Changes::IsFloat(RowId row) const {
  return !has_types_ || examination_.definitions().string(rows_.Dtype(row)) == "float32";
}

bool Changes::IsMatrix(RowId row) const {
  return !has_types_ || ParseShape(examination_.definitions().string(rows_.Shape(row))).size() >= 2;
}

absl::Status Changes::SetGradientsToNone(ProgramChange& change) const {
  bool has_gradients = false, is_changed = false;
  std::vector<const PhaseSpan*> backwards;
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase == Phase::kBackward) backwards.push_back(&span);
  }
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) != Category::kGradients) return;
    has_gradients = true;
    const PhaseSpan* born_in = SpanAt(rows_.birth[row]);
    Holdings ended;
    for (const Holding& holding : change.Of(row)) {
      Step begin = holding.begin;
      while (begin < holding.end) {
        const auto end = std::upper_bound(optimizer_ends_.begin(), optimizer_ends_.end(), begin);
        if (end == optimizer_ends_.end() || !IsAnythingBorn(*end, holding.end)) {
          ended.push_back({begin, holding.end, holding.bytes});
          break;
        }
        ended.push_back({begin, *end, holding.bytes});
        is_changed = true;
        // A gradient that was only zeroed is allocated again in each backward pass, about when it
        // was in its first one.
        const auto next =
            std::lower_bound(backwards.begin(), backwards.end(), *end,
                             [](const PhaseSpan* span, Step step) { return span->begin < step; });
        if (next == backwards.end() || (*next)->begin >= holding.end) break;
        double share = 0;
        if (born_in != nullptr && born_in->end > born_in->begin) {
          share = static_cast<double>(rows_.birth[row] - born_in->begin) /
                  static_cast<double>(born_in->end - born_in->begin);
        }
        begin = (*next)->begin +
                static_cast<Step>(share * static_cast<double>((*next)->end - (*next)->begin));
      }
    }
    change.Set(row, ended);
  });
  if (!has_gradients) return NotApplicable("no gradients are recorded");
  if (optimizer_ends_.empty()) return NotApplicable("no step of an optimizer is recorded");
  if (!is_changed) return NotApplicable("gradients end with the optimizer's step already");
  return absl::OkStatus();
}

absl::Status Changes::FixLeak(const LeakSuspect& suspect, ProgramChange& change) const {
  absl::flat_hash_set<uint64_t> stacks;
  for (const LeakStack& stack : suspect.stacks)
    stacks.insert(uint64_t{stack.forward_stack} << 32 | stack.stack);
  const std::vector<Cycle>& cycles = examination_.cycles().cycles;
  bool is_changed = false;
  ForEachBlock([&](RowId row) {
    if (!stacks.contains(uint64_t{rows_.forward_stack[row]} << 32 | rows_.stack[row])) return;
    const auto cycle = std::lower_bound(cycles.begin(), cycles.end(), rows_.birth[row],
                                        [](const Cycle& a, Step step) { return a.end < step; });
    if (cycle == cycles.end()) return;
    Holdings ended = change.Of(row);
    for (Holding& holding : ended) {
      if (holding.end <= cycle->end) continue;
      holding.end = cycle->end;
      is_changed = true;
    }
    change.Set(row, ended);
  });
  return is_changed ? absl::OkStatus() : NotApplicable("nothing of it outlives its step");
}

absl::Status Changes::FuseOptimizer(bool is_fused, ProgramChange& change) const {
  constexpr uint64_t kTemporariesOfParameter = 3;
  uint64_t largest = 0;
  ForEachBlock([&](RowId row) {
    if (!IsOfOptimizerStep(row)) return;
    change.Set(row, {});
    largest = std::max(largest, rows_.size[row]);
  });
  if (largest == 0) return NotApplicable("the optimizer allocates nothing but its state");
  for (const PhaseSpan& span : spans_.spans) {
    if (!is_fused && span.phase == Phase::kOptimizer)
      change.Add({span.begin, span.end, kTemporariesOfParameter * largest});
  }
  return absl::OkStatus();
}

absl::Status Changes::UseForeach(ProgramChange& change) const {
  std::map<uint64_t, uint64_t> states;  // their number by size: two for each parameter
  std::map<Step, int64_t> temporaries;  // changes of their bytes
  uint64_t needed = 0;
  Step last = 0;  // the end of the last step of the optimizer
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase == Phase::kOptimizer) last = span.end;
  }
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) == Category::kOptimizerState && rows_.HeldAfter(row, last)) {
      needed += ++states[rows_.size[row]] % 2 == 0 ? rows_.size[row] : 0;
    } else if (IsOfOptimizerStep(row)) {
      temporaries[rows_.birth[row]] += static_cast<int64_t>(rows_.size[row]);
      temporaries[rows_.death[row]] -= static_cast<int64_t>(rows_.size[row]);
      change.Set(row, {});
    }
  });
  if (needed == 0) return NotApplicable("the optimizer keeps no state");
  int64_t held = 0, most = 0;
  for (const auto& [step, bytes] : temporaries) most = std::max(most, held += bytes);
  if (static_cast<uint64_t>(most) >= needed)
    return NotApplicable("the optimizer's step has temporary memory for all parameters already");
  for (const PhaseSpan& span : spans_.spans) {
    if (span.phase != Phase::kOptimizer) continue;
    for (const auto& [size, count] : states) {
      for (uint64_t i = 0; i < count / 2; ++i) change.Add({span.begin, span.end, size});
    }
  }
  return absl::OkStatus();
}

absl::Status Changes::UseFlashAttention(const TensorFacts& facts, ProgramChange& change) const {
  if (!facts.batch || facts.batch->square.empty())
    return NotApplicable("no tensor grows with the square of the sequence at the peak");
  absl::flat_hash_set<std::string> places;
  for (const ShapedMemory& square : facts.batch->square) places.insert(square.place);
  const absl::flat_hash_map<RowId, Savers> savers = FindSavers(trace_, examination_.definitions());
  std::vector<std::pair<RowId, uint64_t>> squares;  // each with the length of a row of the matrix
  bool has_softmax = false;
  ForEachBlock([&](RowId row) {
    const Category category = CategoryOf(row);
    if (category != Category::kActivations && category != Category::kTemporaries &&
        category != Category::kRecomputed)
      return;
    const std::vector<uint64_t> sizes =
        ParseShape(examination_.definitions().string(rows_.Shape(row)));
    if (sizes.size() < 3 || sizes.back() != sizes[sizes.size() - 2] ||
        sizes.back() < kShortestSquare)
      return;
    const FrameText* own = examination_.stacks().Own(
        rows_.forward_stack[row] != 0 ? rows_.forward_stack[row] : rows_.stack[row]);
    if (own == nullptr || !places.contains(own->Place())) return;
    squares.emplace_back(row, sizes.back());
    const auto found = savers.find(row);
    has_softmax |= found != savers.end() && found->second.is_softmax;
  });
  if (!has_softmax)
    return NotApplicable("no softmax saves the tensors that are square in the sequence");
  // The kernel saves one number for each row of the matrix.
  for (const auto& [row, length] : squares)
    change.Resize(row, [&, n = length](uint64_t bytes) { return PartOf(bytes, n); });
  return absl::OkStatus();
}

absl::Status Changes::ComputeInPlace(ProgramChange& change) const {
  bool is_changed = false;
  for (Step step = 1; step < trace_.last_step(); ++step) {
    const StepRecord birth = trace_.steps[step - 1], death = trace_.steps[step];
    if (birth.row == kNoRow || birth.is_death || death.row == kNoRow || !death.is_death) continue;
    const RowId input = death.row, result = birth.row;
    if (input == result || !IsBlock(input) || !IsBlock(result) || SpanAt(step) != nullptr ||
        rows_.size[input] != rows_.size[result] || rows_.Dtype(input) != rows_.Dtype(result) ||
        (rows_.Roles(input) & format::kRoleSaved) != 0 ||
        CategoryOf(input) != Category::kTemporaries)
      continue;
    Holdings ended = change.Of(input);
    for (Holding& holding : ended) holding.end = std::min(holding.end, step);
    change.Set(input, ended);
    is_changed = true;
  }
  return is_changed ? absl::OkStatus()
                    : NotApplicable("no operator's input is freed directly after it");
}

const BatchShapes& Changes::Shapes() const {
  if (!shapes_) shapes_.emplace(examination_, categories_, spans_, device_);
  return *shapes_;
}

absl::Status Changes::ScaleInputs(const InputChange& inputs, ProgramChange& change) const {
  const BatchShapes& batch = Shapes();
  if (inputs.has_tokens() && !batch.batch()) {
    return NotApplicable(has_types_
                             ? "the size of the inputs does not explain the shapes of the tensors"
                             : "the shapes of the tensors are not recorded");
  }
  if (inputs.has_tokens() && batch.batch()->tokens == 0)
    return NotApplicable("the inputs are no sequences of tokens");
  // Gradients to be, and weights cast to another type, do not depend on the batch. They have the
  // shape of a parameter; activations may have it by chance.
  absl::flat_hash_set<uint32_t> shapes;
  absl::flat_hash_set<uint64_t> sizes;
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) != Category::kParameters) return;
    shapes.insert(rows_.Shape(row));
    sizes.insert(rows_.size[row]);
  });
  bool is_changed = false;
  ForEachBlock([&](RowId row) {
    const Category category = CategoryOf(row);
    if (category != Category::kActivations && category != Category::kRecomputed &&
        category != Category::kTemporaries && category != Category::kInputs &&
        category != Category::kKvCache)
      return;
    const PhaseSpan* span = SpanAt(rows_.birth[row]);
    if (span != nullptr && span->phase == Phase::kOptimizer) return;
    const bool may_be_of_parameter = span != nullptr || !IsFloat(row);
    const bool has_its_shape =
        rows_.Shape(row) != 0 ? shapes.contains(rows_.Shape(row)) : sizes.contains(rows_.size[row]);
    if (may_be_of_parameter && has_its_shape) return;
    const bool has_dimensions = batch.batch() && rows_.Shape(row) != 0;
    const double factor =
        has_dimensions ? batch.FactorOf(row, inputs) : inputs.samples * inputs.tokens;
    if (factor == 1) return;
    is_changed = true;
    if (factor < 1) {
      change.Resize(row, [&](uint64_t bytes) { return std::min(bytes, Times(bytes, factor)); });
      return;
    }
    // A block may be larger than what was requested, and only that grows.
    const uint64_t size = rows_.size[row];
    const uint64_t spare = size - std::min(size, rows_.Requested(row).value_or(size));
    change.Resize(row,
                  [&](uint64_t bytes) { return Times(bytes - std::min(bytes, spare), factor); });
  });
  return is_changed ? absl::OkStatus() : NotApplicable("no memory of a batch is recorded");
}

absl::Status Changes::HalveBatch(ProgramChange& change) const {
  if (absl::Status status = ScaleInputs({.samples = 0.5}, change); !status.ok()) return status;
  std::vector<Step> zeroed;  // gradients, outside of backward passes
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) == Category::kGradients && rows_.death[row] != kNever)
      zeroed.push_back(rows_.death[row]);
  });
  std::sort(zeroed.begin(), zeroed.end());
  // Gradients of the first micro-batch live through the second one, which adds its own to them.
  // Those of the previous step end before: they are not held at the same time.
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) != Category::kGradients) return;
    const PhaseSpan* span = SpanAt(rows_.birth[row]);
    if (span == nullptr || span->phase != Phase::kBackward) return;
    Holdings longer = change.Of(row);
    if (longer.empty()) return;
    Holding& first = longer.front();
    change.Add({first.begin, first.begin + 1, first.bytes});
    Step begin = EndBefore(span->begin) + 1;
    const auto after = std::upper_bound(zeroed.begin(), zeroed.end(), span->begin);
    if (after != zeroed.begin()) begin = std::max(begin, *(after - 1));
    first.begin = std::min(first.begin, begin);
    change.Set(row, longer);
  });
  return absl::OkStatus();
}

const std::vector<Layers>& Changes::KindsOfLayers() const {
  if (!layers_) layers_ = FindLayers(examination_, categories_, spans_, device_, kKindsOfLayers);
  return *layers_;
}

absl::StatusOr<CheckpointedLayers> Changes::Checkpoint(const std::string& layers,
                                                       ProgramChange& change) const {
  const std::vector<Layers>& kinds = KindsOfLayers();
  bool is_checkpointed = false;
  ForEachBlock([&](RowId row) { is_checkpointed |= CategoryOf(row) == Category::kRecomputed; });
  if (is_checkpointed && layers.empty()) return NotApplicable("layers are recomputed already");
  std::optional<ProgramChange> best;
  CheckpointedLayers found;
  uint64_t least = UINT64_MAX;
  const Step peak = change.FindPeak().step;
  for (const Layers& kind : kinds) {
    if (!layers.empty() && kind.name() != layers) continue;
    ProgramChange tried = change;
    CheckpointedLayers checkpointed{kind.name(), kind.caller, 0, 0};
    for (const LayerRun& run : kind.runs) {
      // The output is the next layer's input.
      if (run.activations.size() < 2) continue;
      // checkpoint_sequential() does not checkpoint the last part.
      if (kind.name() == kSequential && run.is_last_of_pass) continue;
      Step first_death = kNever;
      for (const RowId row : run.activations) first_death = std::min(first_death, rows_.death[row]);
      if (first_death == kNever || first_death <= run.end) continue;
      const PhaseSpan* backward = SpanAt(first_death);
      if (backward == nullptr || backward->phase != Phase::kBackward) continue;
      const Step recomputed = std::max(first_death - 1, run.end + 1);
      bool is_at_peak = false;
      for (size_t i = 0; i + 1 < run.activations.size(); ++i) {
        const RowId row = run.activations[i];
        Holdings halves;
        for (const Holding& holding : tried.Of(row)) {
          if (holding.begin <= peak && peak < holding.end) {
            checkpointed.bytes += holding.bytes;
            is_at_peak = true;
          }
          halves.push_back({holding.begin, std::min(holding.end, run.end + 1), holding.bytes});
          halves.push_back({std::max(holding.begin, recomputed), holding.end, holding.bytes});
        }
        tried.Set(row, halves);
      }
      if (is_at_peak) ++checkpointed.count;
    }
    const uint64_t bytes = tried.FindPeak().bytes;
    if (checkpointed.count == 0 || bytes >= least) continue;
    least = bytes;
    found = checkpointed;
    best.emplace(std::move(tried));
  }
  if (!best) {
    if (!layers.empty())
      return NotApplicable("no layers of this class hold activations at the peak");
    return NotApplicable("no layers that run several times hold activations at the peak");
  }
  change.Replace(std::move(*best));
  return found;
}

absl::Status Changes::UseEightBitState(ProgramChange& change) const {
  bool is_changed = false, has_state = false;
  ForEachBlock([&](RowId row) {
    if (IsOfOptimizerStep(row)) change.Set(row, {});  // one kernel updates each parameter
    if (CategoryOf(row) != Category::kOptimizerState) return;
    has_state = true;
    if (!IsFloat(row)) return;
    change.Resize(row, EightBitBytes);
    is_changed = true;
  });
  if (!has_state) return NotApplicable("the optimizer keeps no state");
  return is_changed ? absl::OkStatus() : NotApplicable("the optimizer's state is not float32");
}

absl::Status Changes::OffloadState(ProgramChange& change) const {
  bool is_changed = false;
  ForEachBlock([&](RowId row) {
    if (CategoryOf(row) != Category::kOptimizerState) return;
    change.Set(row, {});
    is_changed = true;
  });
  return is_changed ? absl::OkStatus() : NotApplicable("the optimizer keeps no state");
}

}  // namespace gmt::analysis
