#include "analysis/frames.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbols/library_rules.h"

namespace gmt::analysis {
namespace {

using symbols::FrameRole;

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
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
  int called = -1;
  for (int i = 0; i < static_cast<int>(frames.size()); ++i) {
    const FrameText& frame = Text(frames[static_cast<size_t>(i)]);
    if (frame.role == FrameRole::kOperator && called < 0) called = i;
    if (frame.is_noise()) continue;
    const bool is_native_library = frame.role == FrameRole::kLibrary && !frame.is_python();
    return called >= 0 && !is_native_library ? called : i;
  }
  if (called >= 0) return called;
  return frames.empty() ? -1 : 0;
}

template <typename Frames>
int Own(const Frames& frames) {
  const auto innermost = [&](auto matches) {
    const auto found = std::find_if(frames.begin(), frames.end(),
                                    [&](const auto& frame) { return matches(Text(frame)); });
    return found == frames.end() ? -1 : static_cast<int>(found - frames.begin());
  };
  const int own_python =
      innermost([](const FrameText& f) { return f.is_python() && f.role == FrameRole::kOwn; });
  if (own_python >= 0) return own_python;
  const int python = innermost([](const FrameText& f) { return f.is_python() && !f.is_noise(); });
  if (python >= 0) return python;
  const int own = innermost([](const FrameText& f) { return f.role == FrameRole::kOwn; });
  return own >= 0 ? own : Leading(frames);
}

}  // namespace

std::string FrameText::Name() const {
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
