#include "analysis/module_path.h"

#include <string_view>

#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

bool IsModuleCall(const FrameText& frame) {
  return frame.is_python() && frame.file.ends_with("torch/nn/modules/module.py") &&
         frame.function.ends_with("_call_impl");
}

bool IsPyTorchs(const FrameText& frame) {
  return frame.file.find("/torch/nn/") != std::string::npos;
}

// "Block" of "Block.forward"; empty where Python did not say.
std::string ClassOf(const FrameText& frame) {
  const size_t dot = frame.function.rfind('.');
  return dot == std::string::npos ? "" : frame.function.substr(0, dot);
}

// A module's forward function: what the call of a module called.
std::vector<const FrameText*> Forwards(const std::vector<FrameText>& frames) {
  std::vector<const FrameText*> forwards;  // outermost first
  bool called = false;
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!frame->is_python()) continue;
    if (IsModuleCall(*frame)) {
      called = true;
      continue;
    }
    if (called) forwards.push_back(&*frame);
    called = false;
  }
  return forwards;
}

}  // namespace

std::string ModulePath(const std::vector<FrameText>& frames) {
  std::string path;
  const FrameText* own = nullptr;
  const FrameText* innermost = nullptr;
  for (const FrameText* forward : Forwards(frames)) {
    std::string name = ClassOf(*forward);
    if (name.empty()) name = absl::StrCat(forward->function, " (", forward->Place(), ")");
    absl::StrAppend(&path, path.empty() ? "" : " > ", name);
    if (!IsPyTorchs(*forward)) own = forward;
    innermost = forward;
  }
  if (own == nullptr) own = innermost;
  if (own == nullptr || ClassOf(*own).empty() || own->Place().empty()) return path;
  return absl::StrCat(path, " (", own->Place(), ")");
}

}  // namespace gmt::analysis
