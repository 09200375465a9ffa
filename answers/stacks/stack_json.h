// answers/stacks/stack_json.h
//
// A stack in JSON, the same in every verb: an array of {"function", "file", "line", "language",
// "module", "role"}, innermost frame first; null for unknown values.
//
// Thread safety: pure functions.

#ifndef GMT_ANSWERS_STACKS_STACK_JSON_H_
#define GMT_ANSWERS_STACKS_STACK_JSON_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/stacks/frames.h"
#include "analysis/stacks/source_line.h"

namespace gmt::answers {

nlohmann::ordered_json FrameJson(const analysis::FrameText& frame);
nlohmann::ordered_json FramesJson(const std::vector<analysis::FrameText>& frames);

// Adds "label" (LabelOf), "frames" and "forward_frames"; the last is empty outside of backward
// passes.
void AddStack(const analysis::Examination& examination, uint32_t stack, uint32_t forward_stack,
              nlohmann::ordered_json& row);

// Returns what is written in the line of the program's own frame, for memory of a backward pass in
// that of the forward pass; "" if it cannot be read. `forward_stack`: 0 outside of backward passes.
std::string SourceText(const analysis::Examination& examination, uint32_t stack,
                       uint32_t forward_stack, analysis::SourceLines& sources);

}  // namespace gmt::answers

#endif  // GMT_ANSWERS_STACKS_STACK_JSON_H_
