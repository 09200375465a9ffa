// cli/report_streams.h
//
// The part of `gpumemtrace report` about streams: what pending work held, what the host waited for,
// and whether CUPTI saw the same memory.

#ifndef GMT_CLI_REPORT_STREAMS_H_
#define GMT_CLI_REPORT_STREAMS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analysis/stream_report.h"

namespace gmt::cli {

// Returns the text with its heading, or "" if there is nothing relevant. Lists end after `top`
// rows.
std::string StreamText(const analysis::StreamReport& report, size_t top);

// Returns the differences between CUPTI and the recording, as sentences.
std::vector<std::string> CrossCheckDoubts(const analysis::CrossCheckResult& check);

nlohmann::ordered_json StreamsJson(const analysis::StreamReport& report);
nlohmann::ordered_json CrossCheckJson(const analysis::CrossCheckResult& check);

}  // namespace gmt::cli

#endif  // GMT_CLI_REPORT_STREAMS_H_
