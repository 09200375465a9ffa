// cli/top/top_json.h
//
// The model of `top` as JSON. Thread safety: pure function.

#ifndef GMT_CLI_TOP_TOP_JSON_H_
#define GMT_CLI_TOP_TOP_JSON_H_

#include <nlohmann/json_fwd.hpp>

#include "cli/top/top_model.h"

namespace gmt::cli {

// [{"pid", "command", "trouble", "heaps": [...], "stacks": [...]}]
nlohmann::ordered_json TopJson(const TopModel& model);

}  // namespace gmt::cli

#endif  // GMT_CLI_TOP_TOP_JSON_H_
