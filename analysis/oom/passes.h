// analysis/oom/passes.h
//
// Passes: follows the memory of the steps up to a failed request, divided into passes, and compares
// each earlier pass with the failing one.
//
//   A pass is a part of a step that ends with a backward pass: a micro-batch, or one of several
//   models; what follows the last one is a pass, too. Passes correspond at the same request: the
//   same stacks, occurring equally often in their pass.
//
// Ownership: the trace, the categories, the failure and the steps must outlive it. Thread safety:
// immutable after construction. Cost: one walk over the steps before the failure.

#ifndef GMT_ANALYSIS_OOM_PASSES_H_
#define GMT_ANALYSIS_OOM_PASSES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

class Passes {
 public:
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

  struct Pass {
    Step begin = 0, end = 0;
    size_t cycle = 0;             // index of its step
    bool is_first = false;        // in its step
    bool has_backward = false;    // it ends with a backward pass
    uint32_t backward_stack = 0;  // the call that began it; 0 if unknown
  };

  // A request of the failing pass.
  struct Place {
    uint64_t key;         // KeyOf its stacks
    uint32_t occurrence;  // within its pass, from 0
    Step step;
  };

  // An earlier pass at the request that corresponds to one of the failing pass.
  struct Comparison {
    size_t pass = 0;   // index in all()
    size_t place = 0;  // from 1: index in places()
    Step step = 0;     // when that request succeeded
    Course at_place, whole;
  };

  // REQUIRES: a framework's allocator failed; `earlier` are the steps before it.
  Passes(const Examination& examination, const Categories& categories,
         const FailedAllocation& failed, const std::vector<Cycle>& earlier);

  // Whether the row is a block of the allocator that failed, on that device.
  bool Counts(RowId row) const {
    return rows_.device[row] == failed_.device && rows_.heap[row] == failed_.heap &&
           !rows_.IsRegion(row);
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

  // The passes that ended before the failure. Empty without an earlier step, because it is unknown
  // then what follows the passes of the failing step.
  const std::vector<Pass>& all() const { return passes_; }
  // The maximum of the earlier steps.
  uint64_t earlier_peak() const { return earlier_peak_; }
  // Whether the model was created in this pass.
  bool IsOfBeginning(const Comparison& pass) const {
    return passes_[pass.pass].cycle == 0 && passes_[pass.pass].is_first;
  }
  // Returns the pass that came nearest to the failing request; among equals, one that is like this
  // one the first in its step or not, since gradients are held then; among these, the one with
  // inputs nearest in size. The pass in which the model was created is used only if there is no
  // other. nullptr if no earlier pass has any of the requests.
  const Comparison* Nearest() const;

  // ---- The failing step and pass
  Step step_begin() const { return step_begin_; }
  Step begin() const { return begin_; }        // when the pass began
  bool is_first() const { return is_first_; }  // the pass, in its step
  // Its last requests, the failed one last, and its course at each of them.
  const std::vector<Place>& places() const { return places_; }
  const std::vector<Course>& at_places() const { return at_places_; }
  const Course& failing() const { return failing_; }
  uint64_t live_bytes() const { return live_.all; }  // at the failure
  // The peak of the step, and the one before it created optimizer state.
  uint64_t step_peak() const { return step_peak_; }
  uint64_t peak_before_state() const { return peak_before_state_; }

 private:
  struct Occurrence {
    uint32_t occurrence;
    size_t place;
  };

  void Divide();
  void EndPass(size_t cycle, const Range* backward);
  void FindPlaces();
  void Walk();
  void Count(RowId row, int sign);
  void Finish(Comparison& pass);
  void NoteState(RowId row);
  void NoteBirth(RowId row, Step step, absl::flat_hash_map<uint64_t, uint32_t>& seen,
                 Comparison& now) const;
  void NotePlace(Step step);

  const Trace& trace_;
  const Rows& rows_;
  const Categories& categories_;
  const FailedAllocation& failed_;
  const std::vector<Cycle>& cycles_;  // that ended before the failure
  const Step step_begin_;
  std::vector<Pass> passes_;
  Step begin_ = 0;
  bool is_first_ = true;
  Live live_;
  std::vector<Place> places_;
  absl::flat_hash_map<uint64_t, std::vector<Occurrence>> index_;  // into places_, by key
  Course failing_;
  bool has_state_ = false;  // whether the failing step created optimizer state
  uint64_t step_peak_ = 0, peak_before_state_ = 0, earlier_peak_ = 0;
  std::vector<Course> at_places_;
  std::vector<Comparison> comparisons_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_OOM_PASSES_H_
