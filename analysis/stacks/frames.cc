#include "analysis/stacks/frames.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbols/demangle.h"
#include "symbols/library_rules.h"

namespace gmt::analysis {
namespace {

using symbols::FrameRole;

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// Converts Windows paths to the separators that rules and people use.
std::string WithSlashes(std::string path) {
  if (path.find('/') == std::string::npos) std::replace(path.begin(), path.end(), '\\', '/');
  return path;
}

constexpr std::string_view kAutograd = "torch::autograd::";
constexpr std::string_view kApply = "::apply(";

bool IsAutogradNode(const FrameText& frame) {
  return !frame.is_python() && frame.role == FrameRole::kLibrary &&
         frame.function.find(kAutograd) != std::string::npos &&
         frame.function.find(kApply) != std::string::npos;
}

// Returns "MmBackward0" for "torch::autograd::generated::MmBackward0::apply(...)".
std::string ClassOfNode(std::string_view function) {
  constexpr std::string_view kGenerated = "generated::";
  function = function.substr(0, function.rfind(kApply));
  function.remove_prefix(function.find(kAutograd) + kAutograd.size());
  if (function.starts_with(kGenerated)) function.remove_prefix(kGenerated.size());
  return std::string(function);
}

bool IsPyTorchs(const FrameText& frame) {
  return frame.role == FrameRole::kLibrary && frame.file.find("/torch/") != std::string::npos;
}

std::string LanguageOf(const format::Definitions& definitions, const format::FrameInfo& frame) {
  switch (frame.language) {
    case format::Language::kPython:
      return "python";
    case format::Language::kOther:
      return std::string(definitions.string(frame.other_language));
    default:
      return "c++";
  }
}

void Append(FrameText frame, const symbols::FrameRules& rules, std::vector<FrameText>& frames) {
  frame.file = WithSlashes(std::move(frame.file));
  if (!frame.is_python()) frame.function = symbols::WithoutCloneSuffix(frame.function);
  frame.role = rules.RoleOf({frame.function, frame.module, frame.file, frame.language});
  frames.push_back(std::move(frame));
}

void AppendFrame(const format::Definitions& definitions, uint32_t id,
                 const symbols::FrameRules& rules, std::vector<FrameText>& frames) {
  const format::FrameInfo& frame = definitions.frame(id);
  FrameText text;
  text.language = LanguageOf(definitions, frame);
  text.module = frame.module != 0 ? definitions.module(frame.module).path
                                  : std::string(definitions.string(frame.module_name));
  text.address = frame.address;
  const auto& symbols = definitions.symbols(id);
  if (frame.function != 0 || symbols.empty()) {
    text.function = definitions.string(frame.function);
    text.file = definitions.string(frame.file);
    text.line = frame.line;
    return Append(std::move(text), rules, frames);
  }
  for (const format::Symbol& symbol : symbols) {
    text.function = definitions.string(symbol.function);
    text.file = definitions.string(symbol.file);
    text.line = symbol.line;
    Append(text, rules, frames);
  }
}

const FrameText& Text(const FrameText& frame) { return frame; }
const FrameText& Text(const FrameText* frame) { return *frame; }

template <typename Frames>
int Leading(const Frames& frames) {
  int called = -1, nameless = -1;
  for (int i = 0; i < static_cast<int>(frames.size()); ++i) {
    const FrameText& frame = Text(frames[static_cast<size_t>(i)]);
    if (frame.role == FrameRole::kOperator && called < 0) called = i;
    if (frame.is_noise()) continue;
    const bool is_native_library = frame.role == FrameRole::kLibrary && !frame.is_python();
    if (is_native_library && frame.function.empty()) {
      if (nameless < 0) nameless = i;
      continue;
    }
    if (is_native_library) return i;
    if (called >= 0) return called;
    return nameless >= 0 ? nameless : i;
  }
  if (called >= 0) return called;
  if (nameless >= 0) return nameless;
  return frames.empty() ? -1 : 0;
}

// Returns the index of the innermost frame from `begin` on that `matches`; -1 if there is none.
template <typename Frames, typename Matches>
int Innermost(const Frames& frames, Matches matches, int begin = 0) {
  for (int i = begin; i < static_cast<int>(frames.size()); ++i) {
    if (matches(Text(frames[static_cast<size_t>(i)]))) return i;
  }
  return -1;
}

bool IsPythonLibrary(const FrameText& frame) {
  return frame.is_python() && frame.role == FrameRole::kLibrary;
}

template <typename Frames>
int Own(const Frames& frames) {
  using Matches = bool (*)(const FrameText&);
  constexpr Matches kPreferred[] = {
      [](const FrameText& f) { return f.is_python() && f.role == FrameRole::kOwn; },
      [](const FrameText& f) { return IsPythonLibrary(f) && !IsPyTorchs(f); },
      IsPythonLibrary,
      [](const FrameText& f) { return f.role == FrameRole::kOwn; },
      IsAutogradNode,
  };
  for (const Matches matches : kPreferred) {
    if (const int found = Innermost(frames, matches); found >= 0) return found;
  }
  return Leading(frames);
}

template <typename Frames>
int Library(const Frames& frames) {
  const int own = Own(frames), leading = Leading(frames);
  const auto between = [&](int i) { return i >= leading && i < own ? i : -1; };
  if (leading < 0) return -1;
  const int others = between(Innermost(
      frames, [](const FrameText& f) { return IsPythonLibrary(f) && !IsPyTorchs(f); }, leading));
  if (others < 0) return -1;
  if (between(Innermost(frames, IsModuleCall, others)) >= 0) return others;
  return between(Innermost(frames, IsPythonLibrary, leading));
}

}  // namespace

std::string FrameText::Name() const {
  if (IsAutogradNode(*this)) return ClassOfNode(function);
  if (!function.empty()) return function;
  if (address == 0) return module.empty() ? "?" : BaseName(module);
  const std::string offset = absl::StrCat("0x", absl::Hex(address));
  return module.empty() ? offset : absl::StrCat(BaseName(module), "+", offset);
}

std::string FrameText::Place() const {
  if (file.empty()) return "";
  return line == 0 ? BaseName(file) : absl::StrCat(BaseName(file), ":", line);
}

std::string FrameText::FileName() const { return BaseName(file); }

std::vector<FrameText> DescribeStack(const format::Definitions& definitions, uint32_t stack,
                                     const symbols::FrameRules& rules) {
  std::vector<FrameText> frames;
  for (uint32_t id : definitions.StackFrames(stack)) AppendFrame(definitions, id, rules, frames);
  return frames;
}

std::vector<FrameText> DescribeFrame(const format::Definitions& definitions, uint32_t frame,
                                     const symbols::FrameRules& rules) {
  std::vector<FrameText> frames;
  AppendFrame(definitions, frame, rules, frames);
  return frames;
}

std::vector<FrameText> WithoutNoise(std::vector<FrameText> frames) {
  const int leading = LeadingFrame(frames);
  int i = 0;
  std::erase_if(frames, [&](const FrameText& f) { return i++ != leading && f.is_noise(); });
  return frames;
}

int LeadingFrame(const std::vector<FrameText>& frames) { return Leading(frames); }
int LeadingFrame(const FrameTextPointers& frames) { return Leading(frames); }
int OwnFrame(const std::vector<FrameText>& frames) { return Own(frames); }
int OwnFrame(const FrameTextPointers& frames) { return Own(frames); }
int LibraryFrame(const std::vector<FrameText>& frames) { return Library(frames); }
int LibraryFrame(const FrameTextPointers& frames) { return Library(frames); }

std::vector<int> Callers(const std::vector<FrameText>& frames) {
  std::vector<int> programs, all;
  int library = -1;  // the outermost since the program's last frame
  for (int i = OwnFrame(frames) + 1; i < static_cast<int>(frames.size()); ++i) {
    const FrameText& frame = frames[static_cast<size_t>(i)];
    if (frame.is_noise()) continue;
    all.push_back(i);
    if (frame.role != FrameRole::kOwn) {
      library = i;
      continue;
    }
    if (library >= 0) programs.push_back(library);
    programs.push_back(i);
    library = -1;
  }
  return programs.empty() ? all : programs;
}

bool IsModuleCall(const FrameText& frame) {
  return frame.is_python() && frame.file.ends_with("torch/nn/modules/module.py") &&
         frame.function.ends_with("_call_impl");
}

std::string KnownLibraryOf(const std::vector<FrameText>& frames) {
  const symbols::LibraryRules& rules = symbols::LibraryRules::BuiltIn();
  for (const FrameText& frame : frames) {
    const std::string_view library =
        rules.LibraryOf({frame.function, frame.module, frame.file, frame.language});
    if (!library.empty()) return std::string(library);
  }
  return "";
}

std::string LibraryOf(const std::vector<FrameText>& frames) {
  std::string library = KnownLibraryOf(frames);
  return library.empty() && !frames.empty() ? kTheProgram : library;
}

bool IsRecomputation(const std::vector<FrameText>& frames) {
  return std::any_of(frames.begin(), frames.end(), [](const FrameText& frame) {
    if (!frame.is_python() || !frame.file.ends_with("torch/utils/checkpoint.py")) return false;
    const std::string_view function = frame.function;
    return function.ends_with("recompute_fn") || function.ends_with("unpack_hook") ||
           function.ends_with("backward");
  });
}

}  // namespace gmt::analysis
