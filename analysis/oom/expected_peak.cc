#include "analysis/oom/expected_peak.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "analysis/oom/passes.h"

namespace gmt::analysis {
namespace {

constexpr size_t kGrowths = 4;         // of a tensor that grows by concatenation
constexpr uint64_t kWorthNaming = 20;  // minimum size of that tensor: one part in this many of the
                                       // live bytes

uint64_t Scaled(uint64_t bytes, double factor) {
  const double scaled = static_cast<double>(bytes) * factor;
  return scaled < 9e18 ? static_cast<uint64_t>(scaled) : std::numeric_limits<int64_t>::max();
}

uint64_t Sum(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

class Expectation {
 public:
  Expectation(const Examination& examination, const Categories& categories,
              const FailedAllocation& failed, const std::vector<Cycle>& earlier)
      : trace_(examination.trace()),
        rows_(trace_.rows),
        categories_(categories),
        failed_(failed),
        cycles_(earlier),
        passes_(examination, categories, failed, earlier) {}

  ExpectedPeak Find(const FirstStepNeeds& needs) && {
    found_.earlier_peak = passes_.earlier_peak();
    found_.bytes = Sum(passes_.live_bytes(), failed_.size);
    found_.floor_bytes = found_.least_bytes = passes_.failing().floor;
    if (GrowsByJoining()) {
      found_.basis = ExpectedPeak::Basis::kGrowth;
      return found_;
    }
    // Each pass replaces the cache of the one before by a longer one.
    if (IsGeneration()) return found_;
    if (const Comparison* nearest = passes_.Nearest()) Compare(*nearest);
    if (needs.parameter_bytes > 0) Project(needs);
    return found_;
  }

 private:
  using Comparison = Passes::Comparison;
  using Pass = Passes::Pass;

  // Bytes at a moment of this or an earlier pass, not counting what its floor holds.
  struct Parts {
    uint64_t variable = 0, fixed = 0;
    uint64_t requested = 0;      // the requested part of `variable`; blocks are larger by varying
                                 // amounts
    uint64_t old_gradients = 0;  // the part of `fixed` that is older than the pass

    // With inputs of `ratio` times the size.
    uint64_t Total(double ratio) const {
      return fixed + (variable - requested) + Scaled(requested, ratio);
    }
  };
  // Excludes rows also held at `also`.
  Parts PartsAt(Step moment, Step floor, Step also) const {
    Parts parts;
    for (RowId row : HeldAfter(trace_, moment)) {
      if (!passes_.Counts(row) || rows_.HeldAfter(row, floor) || rows_.HeldAfter(row, also))
        continue;
      Add(row, 1, parts);
    }
    return parts;
  }

  // `sign`: 1, or -1 to subtract, as sums that wrap.
  void Add(RowId row, int sign, Parts& parts) const {
    const Category category = categories_.Of(row).category;
    const bool is_fixed = category == Category::kGradients || will_be_gradients_.contains(row) ||
                          category == Category::kOptimizerState ||
                          category == Category::kParameters;
    const uint64_t bytes = rows_.size[row];
    const auto add = [sign](uint64_t& sum, uint64_t more) { sum += sign > 0 ? more : 0 - more; };
    add(is_fixed ? parts.fixed : parts.variable, bytes);
    if (!is_fixed) add(parts.requested, std::min(rows_.Requested(row).value_or(bytes), bytes));
  }

  // PyTorch reports a gradient after its node has been evaluated. What the failing pass allocated
  // for one is known by its counterpart in the compared pass. kNoRow: the failed request.
  void FindGradientsToBe(const Pass& pass) {
    absl::flat_hash_map<uint64_t, std::vector<bool>> is_gradient;  // by occurrence
    for (Step step = pass.begin + 1; step <= pass.end; ++step) {
      const RowId row = passes_.BornIn(step);
      if (row != kNoRow) is_gradient[passes_.KeyOf(row)].push_back(passes_.IsGradient(row));
    }
    absl::flat_hash_map<uint64_t, size_t> seen;
    const auto note = [&](uint64_t key, RowId row) {
      const std::vector<bool>& then = is_gradient[key];
      const size_t occurrence = seen[key]++;
      if (occurrence < then.size() && then[occurrence]) will_be_gradients_.insert(row);
    };
    for (Step step = passes_.begin() + 1; step <= failed_.step; ++step) {
      const RowId row = passes_.BornIn(step);
      if (row != kNoRow) note(passes_.KeyOf(row), row);
    }
    note(passes_.KeyOf(failed_.stack, failed_.forward_stack), kNoRow);
  }

  void Compare(const Comparison& earlier) {
    const Pass& pass = passes_.all()[earlier.pass];
    FindGradientsToBe(pass);
    const bool is_request = earlier.place == passes_.places().size();
    const Passes::Course& here = passes_.at_places()[earlier.place - 1];
    const Step then_floor = earlier.at_place.floor_step;
    // The first step creates what remains permanently: workspaces, in addition to the model.
    const Parts then = PartsAt(earlier.step, then_floor,
                               passes_.IsOfBeginning(earlier) ? failed_.step : then_floor);
    const Parts now = PartsAt(is_request ? failed_.step : passes_.places()[earlier.place - 1].step,
                              here.floor_step, here.floor_step);
    const bool is_for_inputs = is_request && !will_be_gradients_.contains(kNoRow);
    const uint64_t requested = now.requested + (is_for_inputs ? failed_.size : 0);
    found_.basis = ExpectedPeak::Basis::kEarlierSteps;
    found_.earlier_steps = cycles_.size();
    if (then.requested > 0) {
      found_.input_ratio = static_cast<double>(requested) / static_cast<double>(then.requested);
    }
    gradients_are_alike_ = pass.is_first == passes_.is_first();
    uint64_t floor = 0;
    for (RowId row : HeldAfter(trace_, passes_.failing().floor_step)) {
      if (passes_.Counts(row) && Stays(row)) floor += rows_.size[row];
    }
    Parts peak = PeakIn(pass, pass, found_.input_ratio);
    const Parts later = PeakAfter(earlier.pass);
    if (passes_.is_first()) peak.fixed = std::max(peak.fixed, GradientsOfFurtherMicroBatches(pass));
    found_.gradients_go =
        gradients_are_alike_ && failed_.forward_stack == 0 && peak.old_gradients == 0;
    found_.floor_bytes = floor + peak.fixed;
    found_.least_bytes = std::max(found_.floor_bytes, floor + later.fixed);
    found_.bytes = std::max({found_.bytes, floor + peak.Total(found_.input_ratio),
                             floor + later.Total(1), passes_.failing().peak});
  }

  // Whether the row is held through the whole failing pass. Gradients that exist when a pass begins
  // may be set to zero in it, as they were in the earlier pass.
  bool Stays(RowId row) const {
    return rows_.HeldAfter(row, passes_.failing().floor_step) &&
           rows_.HeldAfter(row, failed_.step) && !(gradients_are_alike_ && passes_.IsGradient(row));
  }
  // Returns the parts at the peak of an earlier pass, with inputs of `ratio` times the size. Counts
  // what was allocated since the beginning of the `compared` pass, and excludes what stays now.
  // What is older corresponds to what the failing pass already holds.
  Parts PeakIn(const Pass& compared, const Pass& pass, double ratio) const {
    const auto is_old_gradient = [&](RowId row) {
      return gradients_are_alike_ && rows_.birth[row] <= compared.begin && passes_.IsGradient(row);
    };
    Parts now;
    const auto add = [&](RowId row, int sign) {
      if (row == kNoRow || !passes_.Counts(row) || Stays(row)) return;
      const bool is_old = is_old_gradient(row);
      if (!is_old && rows_.birth[row] <= compared.begin) return;
      Add(row, sign, now);
      if (is_old) now.old_gradients += sign > 0 ? rows_.size[row] : 0 - rows_.size[row];
    };
    for (RowId row : HeldAfter(trace_, compared.begin)) add(row, 1);
    Parts most;
    if (compared.begin == pass.begin) most = now;
    for (Step step = compared.begin + 1; step <= pass.end; ++step) {
      const StepRecord record = trace_.steps[step - 1];
      add(record.row, record.is_death ? -1 : 1);
      if (step > pass.begin && now.Total(ratio) > most.Total(ratio)) most = now;
    }
    return most;
  }
  bool IsSameStepAndKind(const Pass& a, const Pass& b) const {
    return a.cycle == b.cycle && a.has_backward == b.has_backward &&
           a.backward_stack == b.backward_stack;
  }
  // Returns the gradients with which the last micro-batch of that step began; 0 if there was only
  // one. Further micro-batches are assumed to be as large as the failing one.
  uint64_t GradientsOfFurtherMicroBatches(const Pass& compared) const {
    uint64_t gradients = 0;
    for (size_t i = passes_.all().size(); i-- > 0 && gradients == 0;) {
      if (passes_.all()[i].is_first || !IsSameStepAndKind(compared, passes_.all()[i])) continue;
      const Step begin = cycles_.size() > compared.cycle ? cycles_[compared.cycle].begin : 0;
      for (RowId row : HeldAfter(trace_, passes_.all()[i].begin)) {
        const bool is_own = rows_.birth[row] > begin && !Stays(row);
        if (is_own && passes_.Counts(row) && passes_.IsGradient(row)) gradients += rows_.size[row];
      }
    }
    return gradients;
  }
  // Returns the highest peak of the other passes that followed in that step.
  Parts PeakAfter(size_t compared) const {
    Parts most;
    for (size_t i = compared + 1; i < passes_.all().size(); ++i) {
      if (passes_.all()[i].cycle != passes_.all()[compared].cycle) break;
      if (IsSameStepAndKind(passes_.all()[i], passes_.all()[compared])) continue;
      const Parts parts = PeakIn(passes_.all()[compared], passes_.all()[i], 1);
      if (parts.Total(1) > most.Total(1)) most = parts;
    }
    return most;
  }

  // Later steps have the optimizer's state in addition to what this one held. If the state is being
  // created in the optimizer's step, the forward and backward pass had none of it.
  void Project(const FirstStepNeeds& needs) {
    if (found_.basis == ExpectedPeak::Basis::kSoFar) {
      found_.basis = ExpectedPeak::Basis::kFirstStep;
    }
    const uint64_t to_come =
        needs.optimizer_bytes - std::min(needs.optimizer_bytes, needs.made_bytes);
    const uint64_t model = needs.parameter_bytes + needs.made_bytes + needs.workspace_bytes;
    const uint64_t of_inputs = found_.bytes - std::min(found_.bytes, model);
    const uint64_t forward =
        model + Scaled(of_inputs, 1 / std::max(needs.forward_share, 0.01)) + needs.backward_bytes;
    const uint64_t before_state =
        std::max(found_.earlier_peak,
                 needs.made_bytes > 0 ? passes_.peak_before_state() : passes_.step_peak());
    found_.floor_bytes = needs.parameter_bytes + needs.optimizer_bytes;
    found_.least_bytes = found_.floor_bytes + needs.trained_bytes;
    found_.bytes = std::max({Sum(std::max(found_.bytes, forward), to_come),
                             Sum(before_state, needs.optimizer_bytes), found_.least_bytes});
    found_.perhaps_bytes = needs.more_optimizer_bytes;
  }

  // Whether most of the live memory is the KV cache of sequences that are being generated.
  bool IsGeneration() const {
    uint64_t cached = 0;
    for (RowId row : HeldAfter(trace_, failed_.step)) {
      if (passes_.Counts(row) && categories_.Of(row).category == Category::kKvCache)
        cached += rows_.size[row];
    }
    return cached > 0 && cached >= passes_.failing().live / 2;
  }

  // x = cat(x, more): each tensor is larger than the previous one, is born before that one dies,
  // and is then the only one left. The failing request may be the next one, or what is to be
  // concatenated.
  struct Chain {
    RowId last = kNoRow, before = kNoRow;
    size_t growths = 0;
  };
  bool GrowsByJoining() const {
    absl::flat_hash_map<uint64_t, Chain> chains;
    for (Step step = passes_.step_begin() + 1; step <= failed_.step; ++step) {
      const RowId row = passes_.BornIn(step);
      if (row == kNoRow) continue;
      Chain& chain = chains[passes_.KeyOf(row)];
      const bool follows = chain.last != kNoRow && rows_.size[row] > rows_.size[chain.last] &&
                           rows_.HeldAfter(chain.last, step) &&
                           (chain.before == kNoRow || !rows_.HeldAfter(chain.before, step));
      chain.growths = follows ? chain.growths + 1 : 0;
      chain.before = follows ? chain.last : kNoRow;
      chain.last = row;
    }
    uint64_t grown = 0;
    for (const auto& [key, chain] : chains) {
      if (chain.growths >= kGrowths && rows_.HeldAfter(chain.last, failed_.step))
        grown += rows_.size[chain.last];
    }
    return grown > 0 && grown >= passes_.failing().live / kWorthNaming;
  }

  const Trace& trace_;
  const Rows& rows_;
  const Categories& categories_;
  const FailedAllocation& failed_;
  const std::vector<Cycle>& cycles_;  // that ended before the failure
  const Passes passes_;
  // Whether the compared pass is, like the failing one, the first in its step or not: it then began
  // with a previous step's gradients, or with those of earlier micro-batches, like that one.
  bool gradients_are_alike_ = false;
  absl::flat_hash_set<RowId> will_be_gradients_;
  ExpectedPeak found_;
};

}  // namespace

std::string_view NameOf(ExpectedPeak::Basis basis) {
  static constexpr std::array<std::string_view, 4> kNames = {"so_far", "first_step",
                                                             "earlier_steps", "growth"};
  return kNames[static_cast<size_t>(basis)];
}

uint64_t ExpectedPeak::WithInputs(double share) const {
  return std::max(least_bytes, floor_bytes + Scaled(bytes - floor_bytes, share));
}

std::vector<Cycle> StepsBefore(const Examination& examination, const FailedAllocation& failed) {
  const Cycles& cycles = examination.cycles();
  std::vector<Cycle> steps;
  for (const Cycle& cycle : cycles.cycles) {
    if (cycle.end <= failed.step) steps.push_back(cycle);
  }
  // These sources divide a step, or end within one.
  const bool is_part =
      cycles.inferred || cycles.source == "backward" || cycles.source == "Optimizer.zero_grad";
  if (!steps.empty() && !is_part) return steps;
  std::vector<Cycle> optimizers;
  Cycle next;
  for (const Range& range : examination.trace().ranges) {
    if (range.end > failed.step ||
        KindOfRange(range, examination.definitions()) != "Optimizer.step") {
      continue;
    }
    next.end = range.end;
    next.end_t_ns = range.end_t_ns;
    optimizers.push_back(next);
    next = {range.end, range.end, range.end_t_ns, range.end_t_ns};
  }
  return optimizers.empty() ? steps : optimizers;
}

ExpectedPeak ExpectPeak(const Examination& examination, const Categories& categories,
                        const FailedAllocation& failed, const std::vector<Cycle>& earlier,
                        const FirstStepNeeds& needs) {
  return Expectation(examination, categories, failed, earlier).Find(needs);
}

}  // namespace gmt::analysis
