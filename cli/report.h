// cli/report.h
//
// The report on one recording, for the verb `report` and for the end of `run`.

#ifndef GMT_CLI_REPORT_H_
#define GMT_CLI_REPORT_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/terminal.h"

namespace gmt::cli {

// Returns the report with default options: what held the memory at the peak, by stack. Its first
// line is a short answer.
absl::StatusOr<std::string> DefaultReport(const std::string& path, const Terminal& terminal);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_H_
