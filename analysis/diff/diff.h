// analysis/diff/diff.h
//
// Diff: what holds more or less memory in one recording than in another, by stack. Stacks are the
// same where their functions are, in the same files: lines may have moved.
//
//   D1  The rows' deltas add up to delta_bytes.
//   D2  delta_bytes = new_bytes - base_bytes, both of the device's moment that is compared.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_DIFF_DIFF_H_
#define GMT_ANALYSIS_DIFF_DIFF_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "analysis/categories/categories.h"
#include "analysis/examination.h"
#include "analysis/frames.h"
#include "analysis/instant.h"

namespace gmt::analysis {

struct DiffRow {
  std::string base_id, new_id;  // "stack/7"; empty: not in that recording
  std::string heap;
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_count = 0, new_count = 0;
  Category category = Category::kUnknown;
  bool moved = false;             // same functions, other lines
  std::vector<FrameText> frames;  // of the new recording, else of the base

  int64_t delta_bytes() const {
    return static_cast<int64_t>(new_bytes) - static_cast<int64_t>(base_bytes);
  }
};

struct Diff {
  int32_t device = 0;
  Instant base_at, new_at;
  std::string aligned_on;  // "step 12", "the peaks", ...
  uint64_t base_bytes = 0, new_bytes = 0;
  uint64_t base_reserved_bytes = 0, new_reserved_bytes = 0;
  std::vector<DiffRow> rows;  // biggest change first, either way
  uint64_t new_stacks = 0, gone_stacks = 0, moved_stacks = 0;
  std::vector<std::string> differences;  // of settings, libraries, devices: sentences

  int64_t delta_bytes() const {
    return static_cast<int64_t>(new_bytes) - static_cast<int64_t>(base_bytes);
  }
};

struct DiffOptions {
  At at;
  std::optional<int32_t> device;
};

// By device that is in both, or in one. NOT_FOUND where `at` or `device` is in neither.
absl::StatusOr<std::vector<Diff>> Compare(const Examination& base,
                                          const Categories& base_categories,
                                          const Examination& changed,
                                          const Categories& changed_categories,
                                          const DiffOptions& options);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_DIFF_DIFF_H_
