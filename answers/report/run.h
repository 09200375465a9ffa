// answers/report/run.h
//
// What was recorded, and how: the program, its libraries and settings, and the sources of events.
//
// Thread safety: pure function.

#ifndef GMT_ANSWERS_REPORT_RUN_H_
#define GMT_ANSWERS_REPORT_RUN_H_

#include <nlohmann/json_fwd.hpp>

#include "analysis/trace/trace.h"

namespace gmt::answers {

// Returns the key "run" of a report. `complete`: the recording has its end.
nlohmann::ordered_json RunJson(const analysis::Trace& trace, bool complete);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_REPORT_RUN_H_
