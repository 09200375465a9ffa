#include "answers/stacks/stack_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "answers/json.h"
#include "answers/stacks/stack_text.h"

namespace gmt::answers {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json FrameJson(const analysis::FrameText& frame) {
  return {{"function", frame.Name()},
          {"file", OrNull(frame.file)},
          {"line", frame.line == 0 ? Json(nullptr) : Json(frame.line)},
          {"language", OrNull(frame.language)},
          {"module", OrNull(frame.module)},
          {"role", symbols::RoleName(frame.role)}};
}

Json FramesJson(const std::vector<analysis::FrameText>& frames) {
  Json json = Json::array();
  for (const analysis::FrameText& frame : frames) json.push_back(FrameJson(frame));
  return json;
}

void AddStack(const analysis::Examination& examination, uint32_t stack, uint32_t forward_stack,
              Json& row) {
  const auto& frames = examination.stacks().Frames(stack);
  const auto& forward_frames = examination.stacks().Frames(forward_stack);
  row["label"] = LabelOf(frames, forward_frames, /*recomputed=*/false);
  row["frames"] = FramesJson(frames);
  row["forward_frames"] = FramesJson(forward_frames);
}

std::string SourceText(const analysis::Examination& examination, uint32_t stack,
                       uint32_t forward_stack, analysis::SourceLines& sources) {
  const auto& frames = examination.stacks().Frames(forward_stack != 0 ? forward_stack : stack);
  const int own = analysis::OwnFrame(frames);
  return own < 0 ? "" : sources.Line(frames[static_cast<size_t>(own)]);
}

}  // namespace gmt::answers
