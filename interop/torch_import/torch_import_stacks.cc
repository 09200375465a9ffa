#include "interop/torch_import/torch_import_stacks.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

#include "format/definitions_builder.h"

namespace gmt::interop {
namespace {

using format::FrameInfo;

constexpr std::string_view kNoFile = "??";  // file of native code without debug information

// Python code has files with these names; everything else is native.
bool IsPythonFile(std::string_view file) {
  return file.ends_with(".py") || file.ends_with(".pyx") ||
         (file.starts_with('<') && file.ends_with('>')) || file.starts_with("<ipython-input") ||
         file.starts_with("<eval_with_key>");
}

// '  File "model.py", line 88, in forward\n    return self.net(x)\n'
struct TracebackEntry {
  std::string_view file, function, source;
  uint32_t line = 0;
};

std::optional<TracebackEntry> ParseTraceback(std::string_view text) {
  constexpr std::string_view kFile = "  File \"", kLine = "\", line ", kIn = ", in ";
  if (!text.starts_with(kFile)) return std::nullopt;
  text.remove_prefix(kFile.size());
  TracebackEntry entry;
  const size_t line = text.find(kLine);
  if (line == std::string_view::npos) return std::nullopt;
  entry.file = text.substr(0, line);
  text.remove_prefix(line + kLine.size());
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), entry.line);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  if (!text.starts_with(kIn)) return std::nullopt;
  text.remove_prefix(kIn.size());
  const size_t newline = text.find('\n');
  if (newline == std::string_view::npos) return std::nullopt;
  entry.function = text.substr(0, newline);
  entry.source = text.substr(newline + 1);
  return entry;
}

}  // namespace

SnapshotStacks::SnapshotStacks(const PickleTree& tree, format::DefinitionsBuilder& definitions)
    : tree_(tree),
      definitions_(definitions),
      name_(tree.Key("name")),
      filename_(tree.Key("filename")),
      line_(tree.Key("line")) {}

template <typename FrameOf>
uint32_t SnapshotStacks::Intern(PickleValue list, Order order, FrameOf frame_of) {
  const PickleTree::Items items = tree_.ItemsOf(list);
  if (items.size == 0) return 0;
  const auto [known, is_new] = stacks_.try_emplace(list.identity(), 0);
  if (!is_new) return known->second;
  std::vector<uint32_t> frames;
  frames.reserve(items.size);
  for (PickleValue item : items) {
    const auto [frame, is_new_frame] = frames_.try_emplace(item.identity());
    if (is_new_frame) frame->second = frame_of(item);
    if (frame->second.has_value()) {
      frames.push_back(*frame->second);
    } else {
      ++no_frames_;
    }
  }
  if (order == Order::kOutermostFirst) std::reverse(frames.begin(), frames.end());
  return known->second = definitions_.InternStack(frames, 0);
}

uint32_t SnapshotStacks::StackOf(PickleValue frames) {
  return Intern(frames, Order::kInnermostFirst,
                [this](PickleValue dict) { return FrameOfDict(dict); });
}

uint32_t SnapshotStacks::ForwardStackOf(PickleValue texts) {
  return Intern(texts, Order::kOutermostFirst,
                [this](PickleValue text) { return FrameOfText(text); });
}

std::optional<uint32_t> SnapshotStacks::FrameOfDict(PickleValue dict) {
  if (!dict.is(PickleValue::Type::kDict)) return std::nullopt;
  FrameInfo frame;
  bool has_more = false;
  tree_.ForEach(dict, [&](PickleValue key, PickleValue value) {
    const auto text = tree_.String(value);
    const auto number = tree_.Int(value);
    if (key == name_ && text.has_value()) {
      frame.function = definitions_.InternString(*text);
      frame.flags |= format::kFrameHasFunction;
    } else if (key == filename_ && text == kNoFile) {
      frame.language = format::Language::kCxx;
    } else if (key == filename_ && text.has_value()) {
      frame.file = definitions_.InternString(*text);
      frame.flags |= format::kFrameHasFile;
      frame.language = IsPythonFile(*text) ? format::Language::kPython : format::Language::kCxx;
    } else if (key == line_ && number.has_value() && *number >= 0 && *number <= UINT32_MAX) {
      frame.line = static_cast<uint32_t>(*number);
      frame.flags |= format::kFrameHasLine;
    } else {
      has_more = true;
    }
  });
  frames_with_more_ += has_more ? 1 : 0;
  return definitions_.InternFrame(frame);
}

// A text that is not in Python's format is kept as a function name.
std::optional<uint32_t> SnapshotStacks::FrameOfText(PickleValue value) {
  const auto text = tree_.String(value);
  if (!text.has_value()) return std::nullopt;
  FrameInfo frame;
  frame.flags = format::kFrameHasFunction;
  frame.language = format::Language::kPython;
  const auto entry = ParseTraceback(*text);
  frame.function = definitions_.InternString(entry.has_value() ? entry->function : *text);
  if (entry.has_value()) {
    frame.file = definitions_.InternString(entry->file);
    frame.line = entry->line;
    frame.flags |= format::kFrameHasFile | format::kFrameHasLine;
    source_lines_ += entry->source.empty() ? 0 : 1;
  }
  return definitions_.InternFrame(frame);
}

}  // namespace gmt::interop
