#include "viewer/questions/frame_table.h"

#include <optional>

#include "answers/stacks/stack_text.h"
#include "viewer/index/names.h"

namespace gmt::viewer {

using analysis::FrameText;

bool IsPrograms(const FrameText* own) {
  return own != nullptr && own->is_python() && own->role == symbols::FrameRole::kOwn;
}

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
  name.called = frame(analysis::LeadingFrame(frames));
  name.key = SiteKey(name.own, name.library);
  return found->second;
}

std::string FrameTable::LineOf(const Name& name) {
  if (name.own == nullptr) return answers::StackLine({}, answers::kStackLabelWidth);
  return answers::StackLine(*name.own, name.library, *name.called, answers::kStackLabelWidth);
}

const FrameText* FrameTable::Own(uint32_t stack, uint32_t forward_stack) {
  const FrameText* own = NameOf(stack).own;
  return forward_stack == 0 || IsPrograms(own) ? own : NameOf(forward_stack).own;
}

bool FrameTable::IsRecomputed(uint32_t stack) {
  std::vector<FrameText> frames;
  for (const FrameText* frame : Frames(stack)) frames.push_back(*frame);
  return analysis::IsRecomputation(frames);
}

std::string FrameTable::Label(uint32_t stack, uint32_t forward_stack) {
  const bool recomputed = IsRecomputed(stack);
  if (forward_stack != 0) {
    return std::string(answers::BackwardOf(recomputed)) + LineOf(NameOf(forward_stack));
  }
  return std::string(recomputed ? answers::kRecomputed : "") + LineOf(NameOf(stack));
}

StackInfo FrameTable::Info(uint32_t stack) {
  StackInfo info;
  const Name name = NameOf(stack);
  info.stack = stack;
  info.key = name.key;
  info.label = Label(stack);
  info.line = LineOf(name);
  info.backward_of = answers::BackwardOf(IsRecomputed(stack));
  if (name.own != nullptr) {
    FrameText own = *name.own;
    own.line = 0;
    std::optional<FrameText> library;
    if (name.library != nullptr) library = *name.library;
    if (library) library->line = 0;
    info.site =
        answers::StackLine(own, library ? &*library : nullptr, own, answers::kStackLabelWidth);
  }
  for (const FrameText* frame : Frames(stack)) {
    info.frames.push_back({frame->Name(), frame->file, frame->module, frame->line, KindOf(*frame)});
  }
  return info;
}

}  // namespace gmt::viewer
