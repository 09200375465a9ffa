// analysis/show/life.h
//
// Life: the history of some of a recording's memory (one stack, one thread, one suspect), from its
// first allocation to its last free.
//
//   F1  Amounts refer to what the selection counts (S1). peak_bytes is the most held at one moment,
//       and also the maximum of most_bytes.
//   F2  from_before + allocations = frees + held, in rows; the parts add up to the whole.
//   F3  at_peaks equals a report of that moment, row by row: each byte once, in the innermost
//       layer, including what the selection does not count.
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

// At the moment when a device held most.
struct LifeAtPeak {
  int32_t device = 0;
  uint32_t heap = 0;
  int64_t t_ns = 0;
  uint64_t bytes = 0, count = 0;  // of the selection
  uint64_t device_bytes = 0;      // of everything on the device
};

// How long the freed memory had been held.
struct Lifetimes {
  uint64_t count = 0;
  uint64_t median_ns = 0, p90_ns = 0, longest_ns = 0;  // 50 %, 90 %, 100 %
  // In steps of the training loop: freed in the step of its birth, in the next, or later. Zero
  // without steps; excludes memory born before the first step or freed after the last.
  uint64_t same_step = 0, next_step = 0, later_step = 0;
};

struct LifeSizes {
  uint64_t smallest = 0, biggest = 0;
  uint64_t distinct = 0;
  bool more = false;  // more than were counted separately
  uint64_t most_common = 0, most_common_count = 0;
};

// In one step of the training loop.
struct LifeCycle {
  uint64_t births = 0, frees = 0;
  uint64_t peak_bytes = 0;
};

// A value with the rows that have it: threads, streams, stacks.
struct LifeValue {
  uint64_t value = 0, count = 0, bytes = 0;
};

struct LifeCategory {
  Category category = Category::kUnknown;
  Confidence confidence = Confidence::kLow;  // that of most bytes
  std::string reason;                        // that of most bytes
  uint64_t bytes = 0, count = 0;
};

struct Life {
  uint64_t from_before = 0, allocations = 0, frees = 0, held = 0, held_bytes = 0;
  uint64_t allocated_bytes = 0;  // over the whole recording
  uint64_t peak_bytes = 0, peak_count = 0;
  Step peak_step = 0;
  int64_t peak_t_ns = 0;
  std::optional<int64_t> first_t_ns, last_t_ns;  // of births, except those before the recording

  int64_t begin_t_ns = 0, end_t_ns = 0;  // of the recording
  std::vector<uint64_t> most_bytes;      // maxima over equal parts of that time

  std::vector<LifePart> parts;       // most peak_bytes first
  std::vector<LifeAtPeak> at_peaks;  // most bytes first
  Lifetimes lifetimes;
  LifeSizes sizes;
  std::vector<LifeCycle> cycles;         // by step of the loop; empty without a loop
  std::vector<LifeCategory> categories;  // at its own peak, most bytes first
  std::vector<Alive> alive;              // why it was alive then; most bytes first
  std::vector<LifeValue> stacks;         // at its own peak, most bytes first
  std::vector<LifeValue> device_stacks;  // F3, for the device that holds most of it then
  // Most rows first; rows with an unknown value are omitted.
  std::vector<LifeValue> threads, streams, forward_stacks, free_stacks;
};

// `buckets`: the number of parts of most_bytes.
Life LifeOf(const Examination& examination, const Categories& categories,
            const Selection& selection, size_t buckets);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_SHOW_LIFE_H_
