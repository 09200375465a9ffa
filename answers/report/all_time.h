// answers/report/all_time.h
//
// The sums of a recording since its start (analysis/report/all_time.h) as text and as JSON.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_REPORT_ALL_TIME_H_
#define GMT_ANSWERS_REPORT_ALL_TIME_H_

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "analysis/report/all_time.h"

namespace gmt::answers {

// Returns "" without sums. `top`: number of rows for each peak.
std::string AllTimeText(const std::optional<analysis::AllTime>& all, size_t top, size_t width);
// Returns null without sums.
nlohmann::ordered_json AllTimeJson(const std::optional<analysis::AllTime>& all, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_ALL_TIME_H_
