#include "analysis/show/occurrences.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace gmt::analysis {
namespace {

void AddRanges(const Trace& trace, const std::string& name, Occurrences& found) {
  for (const Range& range : trace.ranges) {
    if (range.name != name) continue;
    Occurrence one;
    one.begin = range.begin;
    one.end = std::min(range.end, trace.last_step());
    one.whole = range.begin_t_ns != INT64_MIN && range.end != kNever;
    one.begin_t_ns = range.begin_t_ns == INT64_MIN ? 0 : range.begin_t_ns;
    one.end_t_ns = range.end == kNever ? trace.end_t_ns : range.end_t_ns;
    one.thread = range.thread;
    one.stack = range.stack;
    found.all.push_back(one);
  }
  found.is_range = !found.all.empty();
}

void AddMarks(const Trace& trace, const std::string& name, Occurrences& found) {
  for (const Mark& mark : trace.marks) {
    if (mark.name != name) continue;
    if (!found.all.empty()) {
      found.all.back().end = mark.step;
      found.all.back().end_t_ns = mark.t_ns;
      found.all.back().whole = true;
    }
    Occurrence one;
    one.begin = mark.step;
    one.end = trace.last_step();
    one.begin_t_ns = mark.t_ns;
    one.end_t_ns = trace.end_t_ns;
    one.whole = false;
    one.index = mark.index;
    one.thread = mark.thread;
    one.stack = mark.stack;
    found.all.push_back(one);
  }
}

// Returns the bytes allocated on the device after each step, without what allocators keep for
// later.
std::vector<uint64_t> LiveByStep(const Trace& trace, int32_t device) {
  const Rows& rows = trace.rows;
  const auto counts = [&](RowId row) {
    return rows.device[row] == device && IsAllocated(rows, row);
  };
  uint64_t live = 0;
  for (RowId row = 0; row < rows.count(); ++row) {
    if (rows.birth[row] == 0 && counts(row)) live += rows.size[row];
  }
  std::vector<uint64_t> by_step = {live};
  by_step.reserve(size_t{trace.last_step()} + 1);
  for (Step step = 1; step <= trace.last_step(); ++step) {
    const StepRecord record = trace.steps[step - 1];
    if (record.row != kNoRow && counts(record.row)) {
      record.is_death ? live -= rows.size[record.row] : live += rows.size[record.row];
    }
    by_step.push_back(live);
  }
  return by_step;
}

// Returns the maximum of any part of a list without walking over it, because ranges may nest
// deeply.
//
//   values   | block 0 | block 1 | block 2 | block 3 | ...
//   levels_[0]    max       max       max       max         of 1 block from here on
//   levels_[1]       max of 0, 1  ...                       of 2, then 4, 8, ...
class MostBetween {
 public:
  explicit MostBetween(const std::vector<uint64_t>& values) : values_(values) {
    std::vector<uint64_t> blocks;
    for (size_t i = 0; i < values.size(); i += kBlock) blocks.push_back(Walk(i, i + kBlock));
    levels_.push_back(std::move(blocks));
    for (size_t width = 1; 2 * width <= levels_[0].size(); width *= 2) {
      const std::vector<uint64_t>& below = levels_.back();
      std::vector<uint64_t> level;
      for (size_t i = 0; i + width < below.size(); ++i)
        level.push_back(std::max(below[i], below[i + width]));
      levels_.push_back(std::move(level));
    }
  }

  // Returns the maximum of values[first] to values[last].
  uint64_t Of(size_t first, size_t last) const {
    const size_t begin = first / kBlock + 1, end = last / kBlock;
    if (begin >= end) return Walk(first, last + 1);
    const size_t level = static_cast<size_t>(std::bit_width(end - begin)) - 1;
    const uint64_t whole =
        std::max(levels_[level][begin], levels_[level][end - (size_t{1} << level)]);
    return std::max({Walk(first, begin * kBlock), whole, Walk(end * kBlock, last + 1)});
  }

 private:
  static constexpr size_t kBlock = 256;

  uint64_t Walk(size_t begin, size_t end) const {
    uint64_t most = 0;
    for (size_t i = begin; i < std::min(end, values_.size()); ++i)
      most = std::max(most, values_[i]);
    return most;
  }

  const std::vector<uint64_t>& values_;
  std::vector<std::vector<uint64_t>> levels_;
};

}  // namespace

Occurrences FindOccurrences(const Examination& examination, const std::string& name, bool ranges,
                            bool marks) {
  const Trace& trace = examination.trace();
  Occurrences found;
  found.name = name;
  found.device = examination.MainDevice();
  if (ranges) AddRanges(trace, name, found);
  if (marks && found.all.empty()) AddMarks(trace, name, found);
  if (found.all.empty()) return found;
  const std::vector<uint64_t> live = LiveByStep(trace, found.device);
  const MostBetween most(live);
  for (Occurrence& one : found.all) {
    const Step begin = std::min(one.begin, trace.last_step());
    const Step end = std::clamp(one.end, begin, trace.last_step());
    one.live_begin = live[begin];
    one.live_end = live[end];
    one.peak = most.Of(begin, end);
  }
  return found;
}

}  // namespace gmt::analysis
