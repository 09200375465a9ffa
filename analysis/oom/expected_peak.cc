#include "analysis/oom/expected_peak.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/container/flat_hash_map.h"

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

// A step up to some moment.
struct Course {
  uint64_t live = 0;
  uint64_t floor = 0, peak = 0;  // the minimum and maximum of live bytes
  Step floor_step = 0, peak_step = 0;

  void Begin(uint64_t bytes, Step step) {
    live = floor = peak = bytes;
    floor_step = peak_step = step;
  }
  void Note(uint64_t bytes, Step step) {
    live = bytes;
    if (bytes < floor) floor = bytes, floor_step = step;
    if (bytes > peak) peak = bytes, peak_step = step;
  }
  uint64_t variable() const { return live - floor; }
};

// An earlier step at the request that corresponds to the failing one.
struct Comparison {
  bool is_first = false;
  Step begin = 0, end = 0;
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
        begin_(earlier.empty() ? 0 : earlier.back().end) {}

  ExpectedPeak Find(const FirstStepNeeds& needs) && {
    FindPlaces();
    for (RowId row : HeldAfter(trace_, 0)) live_ += Counts(row) ? rows_.size[row] : 0;
    Walk();
    found_.bytes = Sum(failing_.live, failed_.size);
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
  static uint64_t KeyOf(uint32_t stack, uint32_t forward_stack) {
    return uint64_t{forward_stack} << 32 | stack;
  }
  uint64_t KeyOf(RowId row) const { return KeyOf(rows_.stack[row], rows_.forward_stack[row]); }

  // Returns the row born in a step; kNoRow if none that counts.
  RowId BornIn(Step step) const {
    const StepRecord record = trace_.steps[step - 1];
    return record.row != kNoRow && !record.is_death && Counts(record.row) ? record.row : kNoRow;
  }

  // Collects the last requests of the failing step, the failed one last.
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

  // Tracks the live bytes up to the failure, and compares each whole step on the way.
  void Walk() {
    size_t next = 0;
    Comparison now;
    absl::flat_hash_map<uint64_t, uint32_t> seen;
    failing_.Begin(live_, 0);
    now.whole.Begin(live_, 0);
    for (Step step = 1; step <= failed_.step; ++step) {
      while (next < cycles_.size() && cycles_[next].end < step) {
        now.end = cycles_[next].end;
        Finish(now);
        now = {};
        failing_.Begin(live_, step - 1);
        ++next;
      }
      if (next < cycles_.size() && step == cycles_[next].begin + 1) {
        now = {};
        now.begin = step - 1;
        seen.clear();
        now.whole.Begin(live_, step - 1);
      }
      const StepRecord record = trace_.steps[step - 1];
      if (record.row == kNoRow || !Counts(record.row)) continue;
      live_ += record.is_death ? 0 - rows_.size[record.row] : rows_.size[record.row];
      if (next < cycles_.size()) {
        now.whole.Note(live_, step);
        if (!record.is_death) NoteBirth(record.row, step, seen, now);
      } else {
        failing_.Note(live_, step);
        NotePlace(step);
        if (!has_state_) {
          has_state_ = categories_.Of(record.row).category == Category::kOptimizerState;
          if (!has_state_) peak_before_state_ = failing_.peak;
        }
      }
    }
    if (next < cycles_.size()) {
      now.end = cycles_[next].end;
      Finish(now);
    }
    for (; next < cycles_.size(); ++next) failing_.Begin(live_, failed_.step);
    at_places_.push_back(failing_);
    at_places_.back().live += failed_.size;
  }
  void Finish(Comparison& step) {
    found_.earlier_peak = std::max(found_.earlier_peak, step.whole.peak);
    step.is_first = finished_++ == 0;
    if (step.place > 0) comparisons_.push_back(step);
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

  // Returns the step that came nearest to the failing request; among equals, the one with inputs
  // nearest in size. The first step, in which the model was created, is used only if there is no
  // other.
  const Comparison* Nearest() const {
    const Comparison* nearest = nullptr;
    double least = 0;
    for (const Comparison& step : comparisons_) {
      if (step.is_first && comparisons_.size() > 1) continue;
      const double now = static_cast<double>(at_places_[step.place - 1].variable()) + 1;
      const double then = static_cast<double>(step.at_place.variable()) + 1;
      const double distance = std::abs(std::log(now / then));
      const bool is_nearer = nearest == nullptr || step.place > nearest->place ||
                             (step.place == nearest->place && distance <= least);
      if (is_nearer) nearest = &step, least = distance;
    }
    return nearest;
  }

  // Bytes at a moment of this or an earlier step, not counting what its floor holds.
  struct Parts {
    uint64_t variable = 0, fixed = 0;
    uint64_t requested = 0;  // the requested part of `variable`; blocks are larger by varying
                             // amounts
  };
  // Excludes rows also held at `also`.
  Parts PartsAt(Step moment, Step floor, Step also) const {
    Parts parts;
    for (RowId row : HeldAfter(trace_, moment)) {
      if (!Counts(row) || rows_.HeldAfter(row, floor) || rows_.HeldAfter(row, also)) continue;
      Add(row, parts);
    }
    return parts;
  }
  void Add(RowId row, Parts& parts) const {
    const Category category = categories_.Of(row).category;
    const bool is_fixed = category == Category::kGradients ||
                          category == Category::kOptimizerState ||
                          category == Category::kParameters;
    (is_fixed ? parts.fixed : parts.variable) += rows_.size[row];
    if (!is_fixed) parts.requested += rows_.Requested(row).value_or(rows_.size[row]);
  }

  void Compare(const Comparison& earlier) {
    const bool is_request = earlier.place == places_.size();
    const Course& here = at_places_[earlier.place - 1];
    const Step then_floor = earlier.at_place.floor_step;
    // The first step creates what remains permanently: workspaces, in addition to the model.
    const Parts then =
        PartsAt(earlier.step, then_floor, earlier.is_first ? failing_.floor_step : then_floor);
    const Parts now = PartsAt(is_request ? failed_.step : places_[earlier.place - 1].step,
                              here.floor_step, here.floor_step);
    const uint64_t requested = now.requested + (is_request ? failed_.size : 0);
    found_.basis = ExpectedPeak::Basis::kEarlierSteps;
    found_.earlier_steps = cycles_.size();
    if (then.requested > 0) {
      found_.input_ratio = static_cast<double>(requested) / static_cast<double>(then.requested);
    }
    found_.gradients_go = failed_.forward_stack == 0 && !GradientsStayed(earlier);
    uint64_t floor = 0;
    for (RowId row : HeldAfter(trace_, failing_.floor_step)) {
      if (Counts(row) && Stays(row)) floor += rows_.size[row];
    }
    const Parts peak = PeakOf(earlier);
    found_.floor_bytes = found_.least_bytes = floor + peak.fixed;
    found_.bytes =
        std::max({found_.bytes, found_.floor_bytes + Scaled(peak.variable, found_.input_ratio),
                  failing_.peak});
  }

  // The previous step's gradients that exist when this step begins will be set to zero during it,
  // unless the earlier step kept them up to its peak.
  bool GradientsStayed(const Comparison& step) const {
    for (RowId row : HeldAfter(trace_, step.whole.peak_step)) {
      const bool is_old = rows_.birth[row] <= step.begin;
      if (is_old && Counts(row) && categories_.Of(row).category == Category::kGradients)
        return true;
    }
    return false;
  }
  // Whether the row is held through the whole failing step.
  bool Stays(RowId row) const {
    return rows_.HeldAfter(row, failing_.floor_step) && rows_.HeldAfter(row, failed_.step) &&
           !(found_.gradients_go && categories_.Of(row).category == Category::kGradients);
  }
  // Returns the parts at the peak of an earlier step, excluding what stays now.
  Parts PeakOf(const Comparison& step) const {
    uint64_t live = 0;
    for (RowId row : HeldAfter(trace_, step.begin)) {
      if (Counts(row) && !Stays(row)) live += rows_.size[row];
    }
    uint64_t most = live;
    Step peak = step.begin;
    for (Step now = step.begin + 1; now <= step.end; ++now) {
      const StepRecord record = trace_.steps[now - 1];
      if (record.row == kNoRow || !Counts(record.row) || Stays(record.row)) continue;
      live += record.is_death ? 0 - rows_.size[record.row] : rows_.size[record.row];
      if (live > most) most = live, peak = now;
    }
    Parts parts;
    for (RowId row : HeldAfter(trace_, peak)) {
      if (Counts(row) && !Stays(row)) Add(row, parts);
    }
    return parts;
  }

  // Later steps have the optimizer's state in addition to what this one held. If the state is being
  // created in the optimizer's step, the forward and backward pass had none of it.
  void Project(const FirstStepNeeds& needs) {
    if (found_.basis == ExpectedPeak::Basis::kSoFar) {
      found_.basis = ExpectedPeak::Basis::kFirstStep;
    }
    const uint64_t to_come =
        needs.optimizer_bytes - std::min(needs.optimizer_bytes, needs.made_bytes);
    const uint64_t model = needs.parameter_bytes + needs.made_bytes;
    const uint64_t of_inputs = found_.bytes - std::min(found_.bytes, model);
    const uint64_t forward = model + Scaled(of_inputs, 1 / std::max(needs.forward_share, 0.01));
    const uint64_t before_state =
        std::max(found_.earlier_peak, needs.made_bytes > 0 ? peak_before_state_ : failing_.peak);
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
    for (Step step = begin_ + 1; step <= failed_.step; ++step) {
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
    uint32_t occurrence;  // within its step, from 0
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
  Step begin_;                        // of the failing step
  uint64_t live_ = 0;
  std::vector<Place> places_;
  absl::flat_hash_map<uint64_t, std::vector<Occurrence>> index_;
  Course failing_;
  bool has_state_ = false;  // whether the failing step created optimizer state
  uint64_t peak_before_state_ = 0;
  std::vector<Course> at_places_;  // the failing step at each of places_
  std::vector<Comparison> comparisons_;
  size_t finished_ = 0;
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
