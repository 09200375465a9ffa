#include "viewer/questions/frame_table.h"

#include "absl/strings/str_cat.h"
#include "viewer/index/names.h"

namespace gmt::viewer {

using analysis::FrameText;

Frame::Kind KindOf(const FrameText& frame) {
  if (frame.is_noise()) return Frame::kFolded;
  if (frame.role == symbols::FrameRole::kOwn) return Frame::kUser;
  return frame.is_python() ? Frame::kPython : Frame::kNative;
}

std::vector<uint32_t> FrameTable::FrameIds(uint32_t stack) const {
  std::vector<uint32_t> ids;
  while (stack != 0 && ids.size() < kMaxFrames) {
    const format::StackNode& node = definitions_.stack(stack);
    if (node.frame != 0) ids.push_back(node.frame);
    stack = node.parent < stack ? node.parent : 0;  // like Definitions::StackFrames
  }
  return ids;
}

const std::vector<FrameText>& FrameTable::Calls(uint32_t frame) {
  const auto [found, is_new] = calls_.try_emplace(frame);
  if (is_new) found->second = analysis::DescribeFrame(definitions_, frame, rules_);
  return found->second;
}

analysis::FrameTextPointers FrameTable::Frames(uint32_t stack) {
  analysis::FrameTextPointers frames;
  for (const uint32_t id : FrameIds(stack)) {
    for (const FrameText& call : Calls(id)) {
      if (frames.size() == kMaxCalls) return frames;
      frames.push_back(&call);
    }
  }
  return frames;
}

const FrameTable::Name& FrameTable::NameOf(uint32_t stack) {
  const auto [found, is_new] = names_.try_emplace(stack);
  if (!is_new) return found->second;
  const analysis::FrameTextPointers frames = Frames(stack);
  const auto frame = [&](int i) { return i < 0 ? nullptr : frames[static_cast<size_t>(i)]; };
  Name& name = found->second;
  name.own = frame(analysis::OwnFrame(frames));
  name.library = frame(analysis::LibraryFrame(frames));
  name.key = SiteKey(name.own, name.library);
  return found->second;
}

std::string FrameTable::Label(uint32_t stack) {
  const Name& name = NameOf(stack);
  if (name.own == nullptr) return std::string(kUnknownName);
  const auto text = [](const FrameText& frame) {
    const std::string place = frame.Place();
    return place.empty() ? frame.Name() : absl::StrCat(place, " ", frame.Name());
  };
  return name.library == nullptr ? text(*name.own)
                                 : absl::StrCat(text(*name.own), " > ", text(*name.library));
}

StackInfo FrameTable::Info(uint32_t stack) {
  StackInfo info;
  info.stack = stack;
  info.key = Key(stack);
  info.label = Label(stack);
  for (const FrameText* frame : Frames(stack)) {
    info.frames.push_back({frame->Name(), frame->file, frame->module, frame->line, KindOf(*frame)});
  }
  return info;
}

}  // namespace gmt::viewer
