#include "cli/stack_text.h"

#include <fmt/format.h>

#include <string_view>

#include "symbols/demangle.h"

namespace gmt::cli {
namespace {

using analysis::FrameText;

constexpr size_t kCallersShown = 4;

// Where the program did it and what it called there: "Net.forward (model.py:88) > at::linear".
std::string Headline(const FrameText& own, const FrameText& called, size_t width) {
  std::string line = FrameLine(own, width);
  if (&own == &called) return line;
  constexpr std::string_view kCalls = " > ";
  const size_t taken = line.size() + kCalls.size();
  FrameText name_alone = called;
  if (!called.is_python()) name_alone.function = symbols::BareName(called.function);
  line.append(kCalls).append(FrameLine(name_alone, width > taken ? width - taken : 0));
  return line;
}

// The headline, then the callers; frames that are noise are left out.
std::vector<std::string> FoldedLines(const std::vector<FrameText>& frames, size_t width) {
  const auto own = static_cast<size_t>(analysis::OwnFrame(frames));
  std::vector<std::string> lines = {StackLine(frames, width)};
  for (size_t i = own + 1; i < frames.size(); ++i) {
    if (frames[i].is_noise()) continue;
    if (lines.size() > kCallersShown) {
      lines.push_back("  ...");
      break;
    }
    lines.push_back("  < " + FrameLine(frames[i], width - 4));
  }
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
  const auto own = static_cast<size_t>(analysis::OwnFrame(frames));
  const auto called = static_cast<size_t>(analysis::LeadingFrame(frames));
  return Headline(frames[own], frames[called], width);
}

std::vector<std::string> StackLines(const std::vector<FrameText>& frames, FramesShown shown,
                                    size_t width) {
  if (frames.empty()) return {"no stack was recorded"};
  return shown == FramesShown::kRaw ? RawLines(frames, width) : FoldedLines(frames, width);
}

}  // namespace gmt::cli
