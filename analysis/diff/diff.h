// analysis/diff/diff.h
//
// Diff: what holds more or less memory in one recording than in another, by stack.
//
// It compares allocated memory: a framework's blocks, and driver memory that holds no blocks. What
// an allocator keeps in addition to its blocks depends on earlier allocations, not on the code; it
// is reported for information (`base_reserved_bytes`).
//
// Moment: the same step of the training loop; among the steps after warm-up that both have, the one
// in which either holds most. If either has no loop, each recording at its own peak.
//
// Matching stacks: analysis/diff/stack_matching.h. Lines may have moved.
//
//   D1  The rows' deltas add up to delta_bytes; their base_bytes and unchanged_bytes to base_bytes,
//       likewise new_bytes.
//   D2  delta_bytes = new_bytes - base_bytes, both at the device's compared moment.
//   D3  Compare(a, a) has no rows. Compare(b, a) has those of Compare(a, b) with the sides
//       exchanged.
//
// Thread safety: pure functions. Cost: for each recording two walks over the steps and one over the
// rows.

#ifndef GMT_ANALYSIS_DIFF_DIFF_H_
#define GMT_ANALYSIS_DIFF_DIFF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination/examination.h"
#include "analysis/examination/instant.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {

struct DiffRow {
  std::string base_id, new_id;  // "stack/7"; "stack/7+9" of a backward pass; "" if not held
  std::string heap;
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_count = 0, new_count = 0;
  // The parts of the bytes that were requested, as far as known: blocks are larger by varying
  // amounts.
  uint64_t base_requested = 0, new_requested = 0;
  Category category = Category::kUnknown;
  bool moved = false;  // matched although lines or frames differ
  // From the new recording if it has the row, otherwise from the base.
  std::vector<FrameText> frames;
  // For memory born in a backward pass: where the forward pass created its node.
  std::vector<FrameText> forward_frames;

  int64_t delta_bytes() const { return static_cast<int64_t>(new_bytes - base_bytes); }
};

struct Diff {
  int32_t base_device = 0, device = 0;  // numbering may differ
  Instant base_at, new_at;
  std::string aligned_on;  // "step 12", "the peaks", "end", ...
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_reserved_bytes = 0, new_reserved_bytes = 0;
  // Peaks of the whole recordings, counting what is allocated.
  uint64_t base_peak_bytes = 0, new_peak_bytes = 0;
  std::vector<DiffRow> rows;  // largest change first, in either direction
  // Matched with equal bytes and count: not among the rows.
  uint64_t unchanged_stacks = 0, unchanged_bytes = 0;
  // moved_stacks includes unchanged ones.
  uint64_t new_stacks = 0, gone_stacks = 0, moved_stacks = 0;

  int64_t delta_bytes() const { return static_cast<int64_t>(new_bytes - base_bytes); }
  int64_t peak_delta_bytes() const {
    return static_cast<int64_t>(new_peak_bytes - base_peak_bytes);
  }
};

struct Comparison {
  std::vector<Diff> devices;             // GPUs in order, then host memory; omits empty devices
  std::vector<std::string> differences;  // sentences about settings, libraries, devices and loops
};

struct DiffOptions {
  std::optional<At> at;  // for both; nullopt: as above
  std::optional<int32_t> device;
};

// Returns NOT_FOUND if `at` or `device` is not in one of them; the message names the recording.
absl::StatusOr<Comparison> Compare(const Examination& base, const Categories& base_categories,
                                   const Examination& changed, const Categories& changed_categories,
                                   const DiffOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_DIFF_H_
