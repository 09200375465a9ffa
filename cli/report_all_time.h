// cli/report_all_time.h
//
// The sums of a recording since its start (analysis/all_time.h) as text and as JSON.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_REPORT_ALL_TIME_H_
#define GMT_CLI_REPORT_ALL_TIME_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/all_time.h"

namespace gmt::cli {

// Returns "" without sums. `top`: number of rows for each peak.
std::string AllTimeText(const std::optional<analysis::AllTime>& all, size_t top, size_t width);
// Returns null without sums.
nlohmann::ordered_json AllTimeJson(const std::optional<analysis::AllTime>& all, size_t top);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_ALL_TIME_H_
