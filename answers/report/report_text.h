// answers/report/report_text.h
//
// A report (analysis/report/report.h) as text and as JSON.
//
// In the text, the rows, "others" and "total" of each device add up, because every byte of the
// device is in one of the rows.
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

// `top`: number of rows per device; the others are summed up in one line. `lacks`: what the
// recording lacks.
std::string ReportText(const analysis::Report& report, const std::vector<std::string>& lacks,
                       size_t top, FramesShown shown, const Terminal& terminal);

// The recording that a report is about.
struct ReportSource {
  std::string file;                      // as named by the user
  std::vector<std::string> lacks = {};   // what it lacks
  const analysis::Trace* run = nullptr;  // for what was recorded, and how; null: not reported
  bool complete = true;                  // it has its end
};

// Returns one line of JSON, "schema" first, with all keys of the command line contract.
std::string ReportJson(const analysis::Report& report, const ReportSource& source, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_REPORT_TEXT_H_
