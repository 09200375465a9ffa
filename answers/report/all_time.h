// answers/report/all_time.h
//
// What a recording came to since its start (analysis/report/all_time.h), for people and for programs.
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

// Empty without sums. `top`: rows of each peak.
std::string AllTimeText(const std::optional<analysis::AllTime>& all, size_t top, size_t width);
// null without sums.
nlohmann::ordered_json AllTimeJson(const std::optional<analysis::AllTime>& all, size_t top);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_ALL_TIME_H_
