#include "analysis/oom/expected_peak.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

namespace gmt::analysis {
namespace {

constexpr size_t kPlaces = 64;         // requests before the failure at which steps are compared
constexpr size_t kGrowths = 4;         // of a tensor that grows by concatenation
constexpr uint64_t kWorthNaming = 20;  // minimum size of that tensor: one part in this many of the
                                       // live bytes

uint64_t Scaled(uint64_t bytes, double factor) {
  const double scaled = static_cast<double>(bytes) * factor;
  return scaled < 9e18 ? static_cast<uint64_t>(scaled) : std::numeric_limits<int64_t>::max();
}

uint64_t Sum(uint64_t a, uint64_t b) { return a + b < a ? UINT64_MAX : a + b; }

// Live bytes; `apart` from gradients, which are set to zero at various places of a step.
struct Live {
  uint64_t all = 0, apart = 0;
};

// A pass up to some moment.
struct Course {
  uint64_t live = 0, floor = 0;  // apart from gradients: now, and the minimum
  uint64_t peak = 0;             // including gradients
  Step floor_step = 0;

  void Begin(const Live& bytes, Step step) {
    live = floor = bytes.apart;
    peak = bytes.all;
    floor_step = step;
  }
  void Note(const Live& bytes, Step step) {
    live = bytes.apart;
    if (live < floor) floor = live, floor_step = step;
    peak = std::max(peak, bytes.all);
  }
  uint64_t variable() const { return live - floor; }
};

// A part of a step that ends with a backward pass, or what follows the last one. Micro-batches, and
// the models of an adversarial training, are compared separately.
struct Pass {
  Step begin = 0, end = 0;
  size_t cycle = 0;             // index of its step
  bool is_first = false;        // in its step
  bool has_backward = false;    // it ends with a backward pass
  uint32_t backward_stack = 0;  // the call that began it; 0 if unknown
};

// An earlier pass at the request that corresponds to the failing one.
struct Comparison {
  size_t pass = 0;   // index in Expectation::passes_
  size_t place = 0;  // from 1: index in Expectation::places_
  Step step = 0;     // of that request
  Course at_place, whole;
};

class Expectation {
 public:
  Expectation(const Examination& examination, const Categories& categories,
              const FailedAllocation& failed, const std::vector<Cycle>& earlier)
      : trace_(examination.trace()),
        rows_(trace_.rows),
        categories_(categories),
        failed_(failed),
        cycles_(earlier),
        step_begin_(earlier.empty() ? 0 : earlier.back().end) {}

  ExpectedPeak Find(const FirstStepNeeds& needs) && {
    FindPasses();
    FindPlaces();
    for (RowId row : HeldAfter(trace_, 0)) {
      if (Counts(row)) Count(row, 1);
    }
    Walk();
    found_.bytes = Sum(live_.all, failed_.size);
    found_.floor_bytes = found_.least_bytes = failing_.floor;
    if (GrowsByJoining()) {
      found_.basis = ExpectedPeak::Basis::kGrowth;
      return found_;
    }
    if (const Comparison* nearest = Nearest()) Compare(*nearest);
    if (needs.parameter_bytes > 0) Project(needs);
    return found_;
  }

 private:
  bool Counts(RowId row) const {
    return rows_.device[row] == failed_.device && rows_.heap[row] == failed_.heap &&
           !rows_.IsRegion(row);
  }
  // `sign`: 1 for a birth, -1 for a death.
  void Count(RowId row, int sign) {
    const uint64_t bytes = sign > 0 ? rows_.size[row] : 0 - rows_.size[row];
    live_.all += bytes;
    if (!IsGradient(row)) live_.apart += bytes;
  }
  bool IsGradient(RowId row) const { return categories_.Of(row).category == Category::kGradients; }
  static uint64_t KeyOf(uint32_t stack, uint32_t forward_stack) {
    return uint64_t{forward_stack} << 32 | stack;
  }
  uint64_t KeyOf(RowId row) const { return KeyOf(rows_.stack[row], rows_.forward_stack[row]); }

  // Returns the row born in a step; kNoRow if none that counts.
  RowId BornIn(Step step) const {
    const StepRecord record = trace_.steps[step - 1];
    return record.row != kNoRow && !record.is_death && Counts(record.row) ? record.row : kNoRow;
  }

  // Divides the steps before the failure at the ends of their backward passes.
  void FindPasses() {
    std::vector<const Range*> backwards;
    for (const Range& range : trace_.ranges) {
      const bool is_inner = !backwards.empty() && range.end <= backwards.back()->end;
      if (range.name == "backward" && range.end_t_ns <= failed_.t_ns && !is_inner)
        backwards.push_back(&range);
    }
    size_t next = 0;
    begin_ = 0;
    for (size_t i = 0; i <= cycles_.size(); ++i) {
      const bool is_open = i == cycles_.size();
      const Step end = is_open ? failed_.step : cycles_[i].end;
      begin_ = is_open ? step_begin_ : cycles_[i].begin;
      is_first_ = true;
      for (; next < backwards.size() && backwards[next]->end <= end; ++next) {
        if (backwards[next]->end > begin_) EndPass(i, backwards[next]);
      }
      if (!is_open && end > begin_) passes_.push_back({begin_, end, i, is_first_});
    }
    // Without an earlier step, nothing is known of what follows the passes of this one.
    if (cycles_.empty()) passes_.clear();
  }
  void EndPass(size_t cycle, const Range* backward) {
    passes_.push_back({begin_, backward->end, cycle, is_first_, true, backward->stack});
    begin_ = backward->end;
    is_first_ = false;
  }

  // Collects the last requests of the failing pass, the failed one last.
  void FindPlaces() {
    absl::flat_hash_map<uint64_t, uint32_t> seen;
    for (Step step = begin_ + 1; step <= failed_.step; ++step) {
      const RowId row = BornIn(step);
      if (row == kNoRow) continue;
      const uint64_t key = KeyOf(row);
      places_.push_back({key, seen[key]++, step});
    }
    const uint64_t key = KeyOf(failed_.stack, failed_.forward_stack);
    places_.push_back({key, seen[key], failed_.step});
    if (places_.size() > kPlaces) places_.erase(places_.begin(), places_.end() - kPlaces);
    for (size_t i = 0; i < places_.size(); ++i) {
      index_[places_[i].key].push_back({places_[i].occurrence, i + 1});
    }
  }

  // Tracks the live bytes up to the failure, and compares each earlier pass on the way.
  void Walk() {
    Comparison now;
    absl::flat_hash_map<uint64_t, uint32_t> seen;
    failing_.Begin(live_, 0);
    now.whole.Begin(live_, 0);
    for (Step step = 1; step <= failed_.step; ++step) {
      while (now.pass < passes_.size() && passes_[now.pass].end < step) Finish(now);
      if (now.pass < passes_.size() && step == passes_[now.pass].begin + 1) {
        seen.clear();
        const size_t pass = now.pass;
        now = {};
        now.pass = pass;
        now.whole.Begin(live_, step - 1);
      }
      if (step == step_begin_ + 1) step_peak_ = peak_before_state_ = live_.all;
      if (step == begin_ + 1) failing_.Begin(live_, step - 1);
      const StepRecord record = trace_.steps[step - 1];
      if (record.row == kNoRow || !Counts(record.row)) continue;
      Count(record.row, record.is_death ? -1 : 1);
      if (now.pass < passes_.size()) {
        now.whole.Note(live_, step);
        if (!record.is_death) NoteBirth(record.row, step, seen, now);
      }
      if (step > begin_) {
        failing_.Note(live_, step);
        NotePlace(step);
      }
      if (step > step_begin_) NoteState(record.row);
    }
    while (now.pass < passes_.size()) Finish(now);
    if (begin_ == failed_.step) failing_.Begin(live_, begin_);
    at_places_.push_back(failing_);
    at_places_.back().live += failed_.size;
  }
  void Finish(Comparison& pass) {
    if (passes_[pass.pass].end <= step_begin_)
      found_.earlier_peak = std::max(found_.earlier_peak, pass.whole.peak);
    if (pass.place > 0) comparisons_.push_back(pass);
    const size_t next = pass.pass + 1;
    pass = {};
    pass.pass = next;
  }
  // Notes the peak of the failing step, also the one before it created optimizer state.
  void NoteState(RowId row) {
    step_peak_ = std::max(step_peak_, live_.all);
    if (has_state_) return;
    has_state_ = categories_.Of(row).category == Category::kOptimizerState;
    if (!has_state_) peak_before_state_ = step_peak_;
  }
  void NoteBirth(RowId row, Step step, absl::flat_hash_map<uint64_t, uint32_t>& seen,
                 Comparison& now) const {
    const auto known = index_.find(KeyOf(row));
    if (known == index_.end()) return;
    const uint32_t occurrence = seen[known->first]++;
    for (const auto& [of, place] : known->second) {
      if (of != occurrence || place <= now.place) continue;
      now.place = place;
      now.step = step;
      now.at_place = now.whole;
    }
  }
  void NotePlace(Step step) {
    while (at_places_.size() + 1 < places_.size() && places_[at_places_.size()].step <= step) {
      at_places_.push_back(failing_);
    }
  }

  // In this pass the model was created.
  bool IsOfBeginning(const Comparison& pass) const {
    return passes_[pass.pass].cycle == 0 && passes_[pass.pass].is_first;
  }

  // Returns the pass that came nearest to the failing request; among equals, one that is like this
  // one the first in its step or not, since gradients are held then; among these, the one with
  // inputs nearest in size. The pass in which the model was created is used only if there is no
  // other.
  const Comparison* Nearest() const {
    const Comparison* nearest = nullptr;
    std::tuple<size_t, bool, double> best;
    for (const Comparison& pass : comparisons_) {
      if (IsOfBeginning(pass) && comparisons_.size() > 1) continue;
      const double now = static_cast<double>(at_places_[pass.place - 1].variable()) + 1;
      const double then = static_cast<double>(pass.at_place.variable()) + 1;
      const double distance = std::abs(std::log(now / then));
      const std::tuple rank(pass.place, passes_[pass.pass].is_first == is_first_, -distance);
      if (nearest == nullptr || rank >= best) nearest = &pass, best = rank;
    }
    return nearest;
  }

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
      if (!Counts(row) || rows_.HeldAfter(row, floor) || rows_.HeldAfter(row, also)) continue;
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
      const RowId row = BornIn(step);
      if (row != kNoRow) is_gradient[KeyOf(row)].push_back(IsGradient(row));
    }
    absl::flat_hash_map<uint64_t, size_t> seen;
    const auto note = [&](uint64_t key, RowId row) {
      const std::vector<bool>& then = is_gradient[key];
      const size_t occurrence = seen[key]++;
      if (occurrence < then.size() && then[occurrence]) will_be_gradients_.insert(row);
    };
    for (Step step = begin_ + 1; step <= failed_.step; ++step) {
      const RowId row = BornIn(step);
      if (row != kNoRow) note(KeyOf(row), row);
    }
    note(KeyOf(failed_.stack, failed_.forward_stack), kNoRow);
  }

  void Compare(const Comparison& earlier) {
    const Pass& pass = passes_[earlier.pass];
    FindGradientsToBe(pass);
    const bool is_request = earlier.place == places_.size();
    const Course& here = at_places_[earlier.place - 1];
    const Step then_floor = earlier.at_place.floor_step;
    // The first step creates what remains permanently: workspaces, in addition to the model.
    const Parts then =
        PartsAt(earlier.step, then_floor, IsOfBeginning(earlier) ? failed_.step : then_floor);
    const Parts now = PartsAt(is_request ? failed_.step : places_[earlier.place - 1].step,
                              here.floor_step, here.floor_step);
    const bool is_for_inputs = is_request && !will_be_gradients_.contains(kNoRow);
    const uint64_t requested = now.requested + (is_for_inputs ? failed_.size : 0);
    found_.basis = ExpectedPeak::Basis::kEarlierSteps;
    found_.earlier_steps = cycles_.size();
    if (then.requested > 0) {
      found_.input_ratio = static_cast<double>(requested) / static_cast<double>(then.requested);
    }
    gradients_are_alike_ = pass.is_first == is_first_;
    uint64_t floor = 0;
    for (RowId row : HeldAfter(trace_, failing_.floor_step)) {
      if (Counts(row) && Stays(row)) floor += rows_.size[row];
    }
    Parts peak = PeakIn(pass, pass, found_.input_ratio);
    const Parts later = PeakAfter(earlier.pass);
    if (is_first_) peak.fixed = std::max(peak.fixed, GradientsOfFurtherMicroBatches(pass));
    found_.gradients_go =
        gradients_are_alike_ && failed_.forward_stack == 0 && peak.old_gradients == 0;
    found_.floor_bytes = floor + peak.fixed;
    found_.least_bytes = std::max(found_.floor_bytes, floor + later.fixed);
    found_.bytes = std::max({found_.bytes, floor + peak.Total(found_.input_ratio),
                             floor + later.Total(1), failing_.peak});
  }

  // Whether the row is held through the whole failing pass. Gradients that exist when a pass begins
  // may be set to zero in it, as they were in the earlier pass.
  bool Stays(RowId row) const {
    return rows_.HeldAfter(row, failing_.floor_step) && rows_.HeldAfter(row, failed_.step) &&
           !(gradients_are_alike_ && IsGradient(row));
  }
  // Returns the parts at the peak of an earlier pass, with inputs of `ratio` times the size. Counts
  // what was allocated since the beginning of the `compared` pass, and excludes what stays now.
  // What is older corresponds to what the failing pass already holds.
  Parts PeakIn(const Pass& compared, const Pass& pass, double ratio) const {
    const auto is_old_gradient = [&](RowId row) {
      return gradients_are_alike_ && rows_.birth[row] <= compared.begin && IsGradient(row);
    };
    Parts now;
    const auto add = [&](RowId row, int sign) {
      if (row == kNoRow || !Counts(row) || Stays(row)) return;
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
    for (size_t i = passes_.size(); i-- > 0 && gradients == 0;) {
      if (passes_[i].is_first || !IsSameStepAndKind(compared, passes_[i])) continue;
      const Step begin = cycles_.size() > compared.cycle ? cycles_[compared.cycle].begin : 0;
      for (RowId row : HeldAfter(trace_, passes_[i].begin)) {
        const bool is_own = rows_.birth[row] > begin && !Stays(row);
        if (is_own && Counts(row) && IsGradient(row)) gradients += rows_.size[row];
      }
    }
    return gradients;
  }
  // Returns the highest peak of the other passes that followed in that step.
  Parts PeakAfter(size_t compared) const {
    Parts most;
    for (size_t i = compared + 1; i < passes_.size(); ++i) {
      if (passes_[i].cycle != passes_[compared].cycle) break;
      if (IsSameStepAndKind(passes_[i], passes_[compared])) continue;
      const Parts parts = PeakIn(passes_[compared], passes_[i], 1);
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
        std::max(found_.earlier_peak, needs.made_bytes > 0 ? peak_before_state_ : step_peak_);
    found_.floor_bytes = needs.parameter_bytes + needs.optimizer_bytes;
    found_.least_bytes = found_.floor_bytes + needs.trained_bytes;
    found_.bytes = std::max({Sum(std::max(found_.bytes, forward), to_come),
                             Sum(before_state, needs.optimizer_bytes), found_.least_bytes});
    found_.perhaps_bytes = needs.more_optimizer_bytes;
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
    for (Step step = step_begin_ + 1; step <= failed_.step; ++step) {
      const RowId row = BornIn(step);
      if (row == kNoRow) continue;
      Chain& chain = chains[KeyOf(row)];
      const bool follows = chain.last != kNoRow && rows_.size[row] > rows_.size[chain.last] &&
                           rows_.HeldAfter(chain.last, step) &&
                           (chain.before == kNoRow || !rows_.HeldAfter(chain.before, step));
      chain.growths = follows ? chain.growths + 1 : 0;
      chain.before = follows ? chain.last : kNoRow;
      chain.last = row;
    }
    return std::any_of(chains.begin(), chains.end(), [&](const auto& entry) {
      const Chain& chain = entry.second;
      return chain.growths >= kGrowths && rows_.HeldAfter(chain.last, failed_.step) &&
             rows_.size[chain.last] >= failing_.live / kWorthNaming;
    });
  }

  struct Place {
    uint64_t key;
    uint32_t occurrence;  // within its pass, from 0
    Step step;
  };
  struct Occurrence {
    uint32_t occurrence;
    size_t place;
  };

  const Trace& trace_;
  const Rows& rows_;
  const Categories& categories_;
  const FailedAllocation& failed_;
  const std::vector<Cycle>& cycles_;  // that ended before the failure
  const Step step_begin_;             // where the failing step begins
  std::vector<Pass> passes_;          // that ended before the failure
  Step begin_ = 0;                    // where the failing pass begins
  bool is_first_ = true;              // whether that is the first in its step
  // Whether the compared pass is, too: it then began with a previous step's gradients, or with
  // those of earlier micro-batches, like the failing one.
  bool gradients_are_alike_ = false;
  Live live_;
  std::vector<Place> places_;
  absl::flat_hash_map<uint64_t, std::vector<Occurrence>> index_;
  Course failing_;
  bool has_state_ = false;  // whether the failing step created optimizer state
  uint64_t step_peak_ = 0, peak_before_state_ = 0;
  std::vector<Course> at_places_;  // the failing pass at each of places_
  std::vector<Comparison> comparisons_;
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
