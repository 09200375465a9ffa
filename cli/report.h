// cli/report.h
//
// The report on one recording, for the verb and for whoever ends with one (`run`).

#ifndef GMT_CLI_REPORT_H_
#define GMT_CLI_REPORT_H_

#include <cstdio>
#include <string>

#include "absl/status/status.h"
#include "cli/terminal.h"

namespace gmt::cli {

// Prints the report with all defaults: what held the memory at the peak, by stack.
absl::Status PrintReport(const std::string& path, const Terminal& terminal, FILE* out);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_H_
