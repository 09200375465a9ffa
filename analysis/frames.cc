#include "analysis/frames.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "symbols/folding.h"

namespace gmt::analysis {
namespace {

std::string BaseName(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string LanguageOf(const format::Definitions& definitions, const format::FrameInfo& frame) {
  switch (frame.language) {
    case Frames::PYTHON:
      return "python";
    case Frames::OTHER:
      return std::string(definitions.string(frame.other_language));
    default:
      return "c++";
  }
}

void Append(FrameText frame, std::vector<FrameText>& frames) {
  frame.is_noise = symbols::IsNoise(symbols::RoleOf(frame.function, frame.module, frame.file));
  frames.push_back(std::move(frame));
}

void AppendFrame(const format::Definitions& definitions, uint32_t id,
                 std::vector<FrameText>& frames) {
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
    return Append(std::move(text), frames);
  }
  for (const format::Symbol& symbol : symbols) {
    text.function = definitions.string(symbol.function);
    text.file = definitions.string(symbol.file);
    text.line = symbol.line;
    Append(text, frames);
  }
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

std::vector<FrameText> DescribeStack(const format::Definitions& definitions, uint32_t stack) {
  std::vector<FrameText> frames;
  for (uint32_t id : definitions.StackFrames(stack)) AppendFrame(definitions, id, frames);
  return frames;
}

int LeadingFrame(const std::vector<FrameText>& frames) {
  for (size_t i = 0; i < frames.size(); ++i) {
    if (!frames[i].is_noise) return static_cast<int>(i);
  }
  return frames.empty() ? -1 : 0;
}

}  // namespace gmt::analysis
