#include "answers/stacks/stack_json.h"

#include <nlohmann/json.hpp>
#include <string>

#include "answers/json.h"

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

}  // namespace gmt::answers
