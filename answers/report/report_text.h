// answers/report/report_text.h
//
// A report (analysis/report/report.h) for people and for programs.
//
// In the text, per device: rows, "others" and "total" add up, because every byte of the device is
// in one of the rows.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_REPORT_TEXT_H_
#define GMT_ANSWERS_REPORT_REPORT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/report/report.h"
#include "answers/stacks/stack_text.h"
#include "answers/terminal.h"

namespace gmt::answers {

// `top`: rows per device; the others are summed up in one line. `lacks`: what the recording does
// not hold.
std::string ReportText(const analysis::Report& report, const std::vector<std::string>& lacks,
                       size_t top, FramesShown shown, const Terminal& terminal);

// One line of JSON, "schema" first; all keys are in the contract of the command line.
std::string ReportJson(const analysis::Report& report, const std::string& file,
                       const std::vector<std::string>& lacks, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_REPORT_TEXT_H_
