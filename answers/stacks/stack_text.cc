#include "answers/stacks/stack_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "symbols/demangle.h"

namespace gmt::answers {
namespace {

using analysis::FrameText;

constexpr size_t kCallersShown = 4;
const std::string kCalls = " > ";

// The program's own line, the part of a library that it called, and what was called there: "main
// (train.py:20)", "MLP.forward (gpt.py:88)", "at::linear".
struct Headline {
  std::string own;
  std::string library, called;  // "" if it is the same frame
};

Headline HeadlineOf(const FrameText& own, const FrameText* library, const FrameText& called,
                    size_t width) {
  Headline headline;
  headline.own = FrameLine(own, width);
  if (library != nullptr) headline.library = kCalls + FrameLine(*library, width - kCalls.size());
  if (&called == &own || &called == library) return headline;
  FrameText name_alone = called;
  if (!name_alone.is_python()) name_alone.function = symbols::BareName(name_alone.function);
  const size_t taken = headline.own.size() + headline.library.size() + kCalls.size();
  headline.called = kCalls + FrameLine(name_alone, width > taken ? width - taken : 0);
  return headline;
}

Headline HeadlineOf(const std::vector<FrameText>& frames, size_t width) {
  const auto frame = [&](int i) { return &frames[static_cast<size_t>(i)]; };
  const int library = analysis::LibraryFrame(frames);
  return HeadlineOf(*frame(analysis::OwnFrame(frames)), library < 0 ? nullptr : frame(library),
                    *frame(analysis::LeadingFrame(frames)), width);
}

// Returns it on one line. The part of a library is more informative than what it called.
std::string OneLine(const Headline& headline, size_t width) {
  const std::string line = headline.own + headline.library;
  const bool fits = headline.library.empty() || line.size() + headline.called.size() <= width;
  return fits ? line + headline.called : line;
}

// Returns the headline, on several lines if it is too long for one, then the callers.
std::vector<std::string> FoldedLines(const std::vector<FrameText>& frames, size_t width) {
  const Headline headline = HeadlineOf(frames, width);
  std::vector<std::string> lines = {headline.own};
  for (const std::string& part : {headline.library, headline.called}) {
    if (part.empty()) continue;
    const bool fits = headline.library.empty() || lines.back().size() + part.size() <= width;
    if (fits) {
      lines.back() += part;
    } else {
      lines.push_back(" " + part);
    }
  }
  const std::vector<int> callers = analysis::Callers(frames);
  for (size_t i = 0; i < std::min(callers.size(), kCallersShown); ++i) {
    lines.push_back("  < " + FrameLine(frames[static_cast<size_t>(callers[i])], width - 4));
  }
  if (callers.size() > kCallersShown) lines.push_back("  ...");
  return lines;
}

std::vector<std::string> RawLines(const std::vector<FrameText>& frames, size_t width) {
  std::vector<std::string> lines = {FrameLine(frames.front(), width)};
  for (size_t i = 1; i < frames.size(); ++i) {
    lines.push_back("  < " + FrameLine(frames[i], width - 4));
  }
  return lines;
}

}  // namespace

std::string FrameLine(const FrameText& frame, size_t width) {
  const std::string place = frame.Place();
  const size_t taken = place.empty() ? 0 : place.size() + 3;
  const size_t room = width > taken + kMinTextWidth ? width - taken : kMinTextWidth;
  const std::string name =
      frame.is_python() ? frame.Name() : symbols::ShortName(frame.Name(), room);
  return place.empty() ? name : fmt::format("{} ({})", name, place);
}

std::string StackLine(const std::vector<FrameText>& frames, size_t width) {
  if (frames.empty()) return "no stack was recorded";
  return OneLine(HeadlineOf(frames, width), width);
}

std::string StackLine(const FrameText& own, const FrameText* library, const FrameText& called,
                      size_t width) {
  return OneLine(HeadlineOf(own, library, called, width), width);
}

std::string StackId(uint32_t stack, uint32_t forward_stack) {
  if (stack == 0) return "";
  std::string id = fmt::format("stack/{}", stack);
  if (forward_stack != 0) id += fmt::format("+{}", forward_stack);
  return id;
}

std::string_view BackwardOf(bool recomputed) {
  return recomputed ? "recomputed for backward of " : "backward of ";
}

std::string LabelOf(const std::vector<FrameText>& frames,
                    const std::vector<FrameText>& forward_frames, bool recomputed) {
  std::string label(!forward_frames.empty() ? BackwardOf(recomputed)
                    : recomputed            ? kRecomputed
                                            : "");
  return label + StackLine(forward_frames.empty() ? frames : forward_frames, kStackLabelWidth);
}

std::vector<std::string> StackLines(const std::vector<FrameText>& frames, FramesShown shown,
                                    size_t width) {
  if (frames.empty()) return {"no stack was recorded"};
  return shown == FramesShown::kRaw ? RawLines(frames, width) : FoldedLines(frames, width);
}

std::string LayerText(const std::string& layer, size_t width) {
  constexpr std::string_view kAnd = " > ";
  std::string_view text = layer;
  while (text.size() + (text.size() < layer.size() ? 6 : 0) > width) {
    const size_t next = text.find(kAnd);
    if (next == std::string_view::npos) break;
    text.remove_prefix(next + kAnd.size());
  }
  return text.size() == layer.size() ? layer : fmt::format("... > {}", text);
}

}  // namespace gmt::answers
