// cli/report.h
//
// The report on one recording, for the verb and for whoever ends with one (`run`).

#ifndef GMT_CLI_REPORT_H_
#define GMT_CLI_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/terminal.h"

namespace gmt::cli {

// The report with all defaults: what held the memory at the peak, by stack. Its first line is the
// answer in short.
absl::StatusOr<std::string> DefaultReport(const std::string& path, const Terminal& terminal);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_H_
