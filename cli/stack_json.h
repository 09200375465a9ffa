// cli/stack_json.h
//
// A stack in JSON, the same in every verb: an array of {"function", "file", "line", "language",
// "module", "role"}, innermost frame first; null for unknown values.
//
// Thread safety: pure functions.

#ifndef GMT_CLI_STACK_JSON_H_
#define GMT_CLI_STACK_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/frames.h"

namespace gmt::cli {

nlohmann::ordered_json FrameJson(const analysis::FrameText& frame);
nlohmann::ordered_json FramesJson(const std::vector<analysis::FrameText>& frames);

}  // namespace gmt::cli

#endif  // GMT_CLI_STACK_JSON_H_
