// answers/diff/diff_text.h
//
// A comparison of two recordings (analysis/diff/diff.h) as text, as a pull request comment and as
// JSON.
//
// In the text, the rows, "other rows", "unchanged" and "total" add up in each column, within the
// precision of three digits.
//
// Thread safety: pure functions, except that DiffText may read source files.

#ifndef GMT_ANSWERS_DIFF_DIFF_TEXT_H_
#define GMT_ANSWERS_DIFF_DIFF_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analysis/diff/diff.h"
#include "answers/diff/limit.h"
#include "answers/terminal.h"

namespace gmt::answers {

struct DiffSource {
  std::string base_file, new_file;  // as named by the user
  std::vector<std::string> base_lacks, new_lacks;
  int64_t new_start_unix_ns = 0;  // start of the new recording; for the text of source lines
  std::optional<Limit> limit;     // --fail-above
};

// Returns whether a GPU has grown by more than the limit, at the compared moment or at the peaks of
// the whole recordings. A percentage refers to the base; growth from zero exceeds any percentage.
bool IsAbove(const analysis::Diff& diff, const Limit& limit);
bool HasFailed(const analysis::Comparison& comparison, const DiffSource& source);

// Returns the table of the device with the most memory, and a line for each other device. `top`:
// number of rows; 0: as many as fit a screen.
std::string DiffText(const analysis::Comparison& comparison, const DiffSource& source, size_t top,
                     const Terminal& terminal);

// Returns a comment for a pull request: the verdict, the largest changes as a table, the rest
// folded.
std::string DiffMarkdown(const analysis::Comparison& comparison, const DiffSource& source,
                         size_t top);

// Returns JSON, "schema" first. The top-level keys describe the device with the most memory;
// "devices" has all.
std::string DiffJson(const analysis::Comparison& comparison, const DiffSource& source);

// ---- Shared by text and markdown ----------------------------------------------------------------

// REQUIRES: the comparison has devices.
const analysis::Diff& Largest(const analysis::Comparison& comparison);

// "GPU 0: +8.30 GiB (+13.6 %), 60.9 GiB -> 69.2 GiB allocated; FAIL, the limit is 2 %".
std::string DiffVerdict(const analysis::Diff& diff, const DiffSource& source);

// "at step 12 of both, 30 s and 31 s; reserved 66.0 GiB -> 74.9 GiB (depends on earlier calls)".
std::string DiffMoment(const analysis::Diff& diff);

// "activations: Net.forward (model.py:88) > at::linear".
std::string DiffTitle(const analysis::DiffRow& row, size_t width);

// "3 new stacks, 5 gone, 41 with moved lines"; "": none of these.
std::string DiffCounts(const analysis::Diff& diff);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_DIFF_DIFF_TEXT_H_
