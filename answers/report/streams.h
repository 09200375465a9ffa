// answers/report/streams.h
//
// The part of `gpumemtrace report` about streams: what pending work held, what the host waited for,
// and whether CUPTI saw the same memory.

#ifndef GMT_ANSWERS_REPORT_STREAMS_H_
#define GMT_ANSWERS_REPORT_STREAMS_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/report/stream_report.h"

namespace gmt::answers {

// Returns the text with its heading, or "" if there is nothing relevant. Lists end after `top`
// rows.
std::string StreamText(const analysis::StreamReport& report, size_t top);

// Returns the differences between CUPTI and the recording, as sentences.
std::vector<std::string> CrossCheckDoubts(const analysis::CrossCheckResult& check);

nlohmann::ordered_json StreamsJson(const analysis::StreamReport& report);
nlohmann::ordered_json CrossCheckJson(const analysis::CrossCheckResult& check);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_STREAMS_H_
