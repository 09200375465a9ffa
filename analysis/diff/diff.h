// analysis/diff/diff.h
//
// Diff: what holds more or less memory in one recording than in another, by stack.
//
// What is compared is what is allocated: a framework's blocks, and memory of the driver that holds no
// blocks. What an allocator keeps beside its blocks depends on its history, not on the code, and is
// told as information (`base_reserved_bytes`).
//
// When: at the same step of the training loop, of those behind warm-up that both have the one in
// which either holds most; without a loop in both, each at its own peak.
//
// Which stacks are the same: analysis/diff/stack_matching.h. Lines may have moved.
//
//   D1  The rows' deltas add up to delta_bytes; their base_bytes and unchanged_bytes to base_bytes,
//       likewise new_bytes.
//   D2  delta_bytes = new_bytes - base_bytes, both of the device's moment that is compared.
//   D3  Compare(a, a) has no rows. Compare(b, a) has those of Compare(a, b), with the sides exchanged.
//
// Thread safety: pure functions. Cost: two walks over the steps and one over the rows, of each.

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
  std::string base_id, new_id;  // "stack/7", "stack/7+9" of a backward pass; empty: not held there
  std::string heap;
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_count = 0, new_count = 0;
  Category category = Category::kUnknown;
  bool moved = false;             // matched, though lines or frames differ
  std::vector<FrameText> frames;  // of the new recording, else of the base
  // Of memory born in a backward pass, where the forward pass made the node it belongs to.
  std::vector<FrameText> forward_frames;

  int64_t delta_bytes() const { return static_cast<int64_t>(new_bytes - base_bytes); }
};

struct Diff {
  int32_t base_device = 0, device = 0;  // of the new recording; they may be numbered differently
  Instant base_at, new_at;
  std::string aligned_on;  // "step 12", "the peaks", "end", ...
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_reserved_bytes = 0, new_reserved_bytes = 0;
  // Of the whole recordings, of what is allocated.
  uint64_t base_peak_bytes = 0, new_peak_bytes = 0;
  std::vector<DiffRow> rows;  // biggest change first, either way
  // Matched, of the same bytes and count: not among the rows.
  uint64_t unchanged_stacks = 0, unchanged_bytes = 0;
  uint64_t new_stacks = 0, gone_stacks = 0, moved_stacks = 0;  // moved: unchanged ones, too

  int64_t delta_bytes() const { return static_cast<int64_t>(new_bytes - base_bytes); }
  int64_t peak_delta_bytes() const {
    return static_cast<int64_t>(new_peak_bytes - base_peak_bytes);
  }
};

struct Comparison {
  std::vector<Diff> devices;  // GPUs in order, then host memory; without those that hold nothing
  std::vector<std::string> differences;  // of settings, libraries, devices, loops: sentences
};

struct DiffOptions {
  std::optional<At> at;  // of both; nullopt: as above
  std::optional<int32_t> device;
};

// NOT_FOUND where `at` or `device` is not in one of them; the message says in which.
absl::StatusOr<Comparison> Compare(const Examination& base, const Categories& base_categories,
                                   const Examination& changed, const Categories& changed_categories,
                                   const DiffOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_DIFF_H_
