// analysis/show/life.h
//
// Life: what became of some of a recording's memory - of one stack, one thread, one suspect - from its
// first allocation to its last free.
//
//   F1  Amounts are of what the selection counts (S1). peak_bytes is the most that it held at one
//       moment; most_bytes has it too.
//   F2  from_before + allocations = frees + held, in rows; the parts add up to the whole.
//   F3  at_peaks is what a report of that moment has for it, row by row: each byte once, of the
//       innermost layer, what is not counted too.
//
// Thread safety: pure functions. Cost: one walk over the steps, two over the rows.

#ifndef GMT_ANALYSIS_SHOW_LIFE_H_
#define GMT_ANALYSIS_SHOW_LIFE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analysis/categories/categories.h"
#include "analysis/examination/alive.h"
#include "analysis/examination/examination.h"
#include "analysis/show/selection.h"

namespace gmt::analysis {

// By device and heap.
struct LifePart {
  int32_t device = 0;
  uint32_t heap = 0;
  uint64_t from_before = 0, allocations = 0, frees = 0;  // rows
  uint64_t held = 0, held_bytes = 0;                     // at the end
  uint64_t peak_bytes = 0;
};

// At the moment in which a device held most.
struct LifeAtPeak {
  int32_t device = 0;
  uint32_t heap = 0;
  int64_t t_ns = 0;
  uint64_t bytes = 0, count = 0;  // its own
  uint64_t device_bytes = 0;      // of all
};

// How long what was freed had been held.
struct Lifetimes {
  uint64_t count = 0;
  uint64_t middle_ns = 0, most_ns = 0, longest_ns = 0;  // 50 %, 90 %, 100 %
  // In steps of the training loop: freed in the step in which it was born, in the next one, later.
  // Zero without steps, and of what was born before the first or freed behind the last.
  uint64_t same_step = 0, next_step = 0, later_step = 0;
};

struct LifeSizes {
  uint64_t smallest = 0, biggest = 0;
  uint64_t distinct = 0;
  bool more = false;  // more than were told apart
  uint64_t most_common = 0, most_common_count = 0;
};

// In one step of the training loop.
struct LifeCycle {
  uint64_t births = 0, frees = 0;
  uint64_t peak_bytes = 0;
};

// One of several values, with the rows that have it: threads, streams, stacks.
struct LifeValue {
  uint64_t value = 0, count = 0, bytes = 0;
};

struct LifeCategory {
  Category category = Category::kUnknown;
  Confidence confidence = Confidence::kLow;  // of most of the bytes
  std::string reason;                        // of most of the bytes
  uint64_t bytes = 0, count = 0;
};

struct Life {
  uint64_t from_before = 0, allocations = 0, frees = 0, held = 0, held_bytes = 0;
  uint64_t allocated_bytes = 0;  // in all its time
  uint64_t peak_bytes = 0, peak_count = 0;
  Step peak_step = 0;
  int64_t peak_t_ns = 0;
  std::optional<int64_t> first_t_ns, last_t_ns;  // births; nothing of what is from before

  int64_t begin_t_ns = 0, end_t_ns = 0;  // of the recording
  std::vector<uint64_t> most_bytes;      // in equal parts of that time

  std::vector<LifePart> parts;       // most peak_bytes first
  std::vector<LifeAtPeak> at_peaks;  // most bytes first
  Lifetimes lifetimes;
  LifeSizes sizes;
  std::vector<LifeCycle> cycles;         // by step of the loop; empty without
  std::vector<LifeCategory> categories;  // at its own peak, most bytes first
  std::vector<Alive> alive;              // why it was, then; most bytes first
  std::vector<LifeValue> stacks;         // at its own peak, most bytes first
  std::vector<LifeValue> device_stacks;  // F3, of the device of which it has most then
  // Most rows first; of rows where nobody knows there is none.
  std::vector<LifeValue> threads, streams, forward_stacks, free_stacks;
};

// `buckets`: how many parts the time is cut into.
Life LifeOf(const Examination& examination, const Categories& categories,
            const Selection& selection, size_t buckets);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_LIFE_H_
