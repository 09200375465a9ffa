#include "analysis/oom/passes.h"

#include <cmath>
#include <tuple>

namespace gmt::analysis {
namespace {

constexpr size_t kPlaces = 64;  // requests before the failure at which passes are compared

}  // namespace

Passes::Passes(const Examination& examination, const Categories& categories,
               const FailedAllocation& failed, const std::vector<Cycle>& earlier)
    : trace_(examination.trace()),
      rows_(trace_.rows),
      categories_(categories),
      failed_(failed),
      cycles_(earlier),
      step_begin_(earlier.empty() ? 0 : earlier.back().end) {
  Divide();
  FindPlaces();
  for (RowId row : HeldAfter(trace_, 0)) {
    if (Counts(row)) Count(row, 1);
  }
  Walk();
}

// `sign`: 1 for a birth, -1 for a death.
void Passes::Count(RowId row, int sign) {
  const uint64_t bytes = sign > 0 ? rows_.size[row] : 0 - rows_.size[row];
  live_.all += bytes;
  if (!IsGradient(row)) live_.apart += bytes;
}

// Divides the steps before the failure at the ends of their backward passes.
void Passes::Divide() {
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

void Passes::EndPass(size_t cycle, const Range* backward) {
  passes_.push_back({begin_, backward->end, cycle, is_first_, true, backward->stack});
  begin_ = backward->end;
  is_first_ = false;
}

// Collects the last requests of the failing pass, the failed one last.
void Passes::FindPlaces() {
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
void Passes::Walk() {
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

void Passes::Finish(Comparison& pass) {
  if (passes_[pass.pass].end <= step_begin_)
    earlier_peak_ = std::max(earlier_peak_, pass.whole.peak);
  if (pass.place > 0) comparisons_.push_back(pass);
  const size_t next = pass.pass + 1;
  pass = {};
  pass.pass = next;
}

// Notes the peak of the failing step, also the one before it created optimizer state.
void Passes::NoteState(RowId row) {
  step_peak_ = std::max(step_peak_, live_.all);
  if (has_state_) return;
  has_state_ = categories_.Of(row).category == Category::kOptimizerState;
  if (!has_state_) peak_before_state_ = step_peak_;
}

void Passes::NoteBirth(RowId row, Step step, absl::flat_hash_map<uint64_t, uint32_t>& seen,
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

void Passes::NotePlace(Step step) {
  while (at_places_.size() + 1 < places_.size() && places_[at_places_.size()].step <= step) {
    at_places_.push_back(failing_);
  }
}

const Passes::Comparison* Passes::Nearest() const {
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

}  // namespace gmt::analysis
