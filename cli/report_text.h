// cli/report_text.h
//
// A report (analysis/report.h) for people and for programs.
//
// In the text, per device: rows, "others" and "total" add up, because every byte of the device is
// in one of the rows.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_REPORT_TEXT_H_
#define GMT_CLI_REPORT_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "analysis/report.h"
#include "cli/stack_text.h"
#include "cli/terminal.h"

namespace gmt::cli {

// `top`: rows per device; the others are summed up in one line. `lacks`: what the recording does
// not hold.
std::string ReportText(const analysis::Report& report, const std::vector<std::string>& lacks,
                       size_t top, FramesShown shown, const Terminal& terminal);

// One line of JSON, "schema" first; all keys are in the contract of the command line.
std::string ReportJson(const analysis::Report& report, const std::string& file,
                       const std::vector<std::string>& lacks, size_t top);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_TEXT_H_
