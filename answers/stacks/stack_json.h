// answers/stacks/stack_json.h
//
// A stack in JSON, the same in every verb: an array of {"function", "file", "line", "language",
// "module", "role"}, innermost frame first; null for unknown values.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_STACK_JSON_H_
#define GMT_ANSWERS_STACKS_STACK_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "analysis/stacks/frames.h"

namespace gmt::answers {

nlohmann::ordered_json FrameJson(const analysis::FrameText& frame);
nlohmann::ordered_json FramesJson(const std::vector<analysis::FrameText>& frames);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_STACK_JSON_H_
