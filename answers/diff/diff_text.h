// answers/diff/diff_text.h
//
// A comparison of two recordings (analysis/diff/diff.h): for people, for a pull request, for programs.
//
// In the text the rows, "other rows", "unchanged" and "total" add up by column, within what three
// digits can hold.
//
// Thread safety: pure functions, but for the source files that DiffText may read.

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
  std::string base_file, new_file;  // as the user named them
  std::vector<std::string> base_lacks, new_lacks;
  int64_t new_start_unix_ns = 0;  // of the recording; for the text of source lines
  std::optional<Limit> limit;     // --fail-above
};

// Whether a GPU has grown by more than the limit: at the moment compared, or at the peaks of the whole
// recordings. A percentage is of the base; something from nothing is above each.
bool IsAbove(const analysis::Diff& diff, const Limit& limit);
bool HasFailed(const analysis::Comparison& comparison, const DiffSource& source);

// The table of the device with most memory, a line for each other one. `top`: rows; 0: as many as fit
// a screen.
std::string DiffText(const analysis::Comparison& comparison, const DiffSource& source, size_t top,
                     const Terminal& terminal);

// A comment for a pull request: the verdict, the largest changes as a table, the rest folded.
std::string DiffMarkdown(const analysis::Comparison& comparison, const DiffSource& source,
                         size_t top);

// "schema" first. The contract's keys are of the device with most memory; all are in "devices".
std::string DiffJson(const analysis::Comparison& comparison, const DiffSource& source);

// ---- What text and markdown share ---------------------------------------------------------------

// REQUIRES: the comparison has devices.
const analysis::Diff& Largest(const analysis::Comparison& comparison);

// "GPU 0: +8.30 GiB (+13.6 %), 60.9 GiB -> 69.2 GiB allocated; FAIL, the limit is 2 %".
std::string DiffVerdict(const analysis::Diff& diff, const DiffSource& source);

// "at step 12 of both, 30.1 s and 31.0 s; reserved 66.0 GiB -> 74.9 GiB, which depends on history".
std::string DiffMoment(const analysis::Diff& diff);

// "activations: Net.forward (model.py:88) > at::linear".
std::string DiffTitle(const analysis::DiffRow& row, size_t width);

// "3 new stacks, 5 gone, 41 with moved lines"; "": none of these.
std::string DiffCounts(const analysis::Diff& diff);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_DIFF_DIFF_TEXT_H_
