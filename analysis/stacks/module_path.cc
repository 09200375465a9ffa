#include "analysis/stacks/module_path.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"

namespace gmt::analysis {
namespace {

bool IsModuleOfPyTorch(const FrameText& frame) {
  return frame.file.find("/torch/nn/") != std::string::npos;
}

std::string_view LastName(const FrameText& frame) {
  const std::string_view function = frame.function;
  return function.substr(function.rfind('.') + 1);
}

// Returns "Block" for "Block.forward"; "" if Python did not record the class.
std::string ClassOf(const FrameText& frame) {
  const size_t dot = frame.function.rfind('.');
  return dot == std::string::npos ? "" : frame.function.substr(0, dot);
}

// Whether the function was created by another one: a decorator's wrapper, a hook, a closure.
bool IsMade(const FrameText& frame) { return frame.function.find("<locals>") != std::string::npos; }

bool IsOfPyTorch(const FrameText& frame) { return frame.file.find("/torch/") != std::string::npos; }

// Code that torch.compile generated from several modules, and its callers.
bool IsCompiledCode(const FrameText& frame) {
  return frame.file.find("/torchinductor_") != std::string::npos ||
         frame.file.find("/torch/_functorch/") != std::string::npos;
}

// Returns the forward function of a module among the frames that the module's call called,
// outermost first, up to the next module call. Otherwise returns a function that replaces it, or a
// method that is a hook; null if only decorators, closures and PyTorch's wrappers run.
const FrameText* ForwardIn(const std::vector<const FrameText*>& called, bool is_last) {
  const auto find = [&](auto matches) {
    const auto found = std::find_if(called.begin(), called.end(), matches);
    return found == called.end() ? nullptr : *found;
  };
  const FrameText* forward = find([](const FrameText* frame) {
    const bool wraps = IsOfPyTorch(*frame) && !IsModuleOfPyTorch(*frame);
    return LastName(*frame) == "forward" && !IsMade(*frame) && !wraps;
  });
  if (forward != nullptr || !is_last) return forward;
  return find([](const FrameText* frame) {
    return !IsMade(*frame) && !IsOfPyTorch(*frame) && !IsCompiledCode(*frame) &&
           frame->role != symbols::FrameRole::kInterpreter;
  });
}

// Returns the modules' forward functions, outermost first, followed by the innermost compiled code.
std::vector<const FrameText*> Forwards(const std::vector<FrameText>& frames) {
  std::vector<const FrameText*> forwards, called;
  bool is_in_module = false;
  const auto take = [&](bool is_last) {
    const FrameText* forward = ForwardIn(called, is_last);
    if (forward != nullptr) forwards.push_back(forward);
    if (!is_last) called.clear();
  };
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    if (!frame->is_python()) continue;
    if (IsModuleCall(*frame)) {
      take(false);
      is_in_module = true;
    } else if (is_in_module) {
      called.push_back(&*frame);
    }
  }
  take(true);
  const auto compiled = std::find_if(called.rbegin(), called.rend(),
                                     [](const FrameText* frame) { return IsCompiledCode(*frame); });
  if (compiled != called.rend()) forwards.push_back(*compiled);
  return forwards;
}

// Returns "Block", or "forward (gpt.py:45)" if the class is unknown. A function with another name
// may be a hook, whose class is no module: "Watcher.see_output".
std::string ModuleName(const FrameText& forward) {
  if (IsCompiledCode(forward)) return "compiled code";
  const std::string name = ClassOf(forward);
  if (!name.empty() && LastName(forward) != "forward") return forward.function;
  return name.empty() ? absl::StrCat(forward.function, " (", forward.Place(), ")") : name;
}

}  // namespace

std::string ModulePath(const std::vector<FrameText>& frames) {
  std::string path;
  const FrameText* own = nullptr;
  const FrameText* innermost = nullptr;
  for (const FrameText* forward : Forwards(frames)) {
    absl::StrAppend(&path, path.empty() ? "" : " > ", ModuleName(*forward));
    if (IsCompiledCode(*forward)) continue;
    if (!IsModuleOfPyTorch(*forward)) own = forward;
    innermost = forward;
  }
  if (own == nullptr) own = innermost;
  if (own == nullptr || ClassOf(*own).empty() || own->Place().empty()) return path;
  return absl::StrCat(path, " (", own->Place(), ")");
}

std::vector<ModuleCall> ModuleCalls(const std::vector<FrameText>& frames) {
  std::vector<ModuleCall> calls;
  for (const FrameText* forward : Forwards(frames)) {
    ModuleCall call{ModuleName(*forward), ""};
    const auto caller = std::find_if(
        frames.begin() + (forward - frames.data()) + 1, frames.end(), [](const FrameText& frame) {
          return frame.is_python() && !IsMade(frame) && frame.role == symbols::FrameRole::kOwn;
        });
    if (caller != frames.end())
      call.caller = absl::StrCat(caller->Name(), " (", caller->Place(), ")");
    calls.push_back(std::move(call));
  }
  return calls;
}

}  // namespace gmt::analysis
