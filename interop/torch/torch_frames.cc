#include "interop/torch/torch_frames.h"

#include "absl/strings/str_cat.h"

namespace gmt::interop {

using analysis::FrameText;

namespace {

constexpr std::string_view kNoFile = "??";

bool HasFile(const FrameText& frame) { return !frame.file.empty() && frame.file != kNoFile; }

}  // namespace

std::vector<FrameText> StatedFrames(const format::Definitions& definitions, uint32_t stack) {
  std::vector<FrameText> frames;
  for (uint32_t id : definitions.StackFrames(stack)) {
    const format::FrameInfo& info = definitions.frame(id);
    const bool has_file = (info.flags & format::kFrameHasFile) != 0;
    FrameText& frame = frames.emplace_back();
    frame.function = definitions.string(info.function);
    frame.file = has_file ? definitions.string(info.file) : kNoFile;
    frame.line = info.line;
  }
  return frames;
}

void TorchFrameWriter::Write(uint32_t stack, uint32_t forward_stack) {
  const auto known = lists_.find({stack, forward_stack});
  if (known != lists_.end()) return pickle_.Recall(known->second);
  pickle_.BeginList();
  lists_[{stack, forward_stack}] = pickle_.Remember();
  for (const FrameText& frame : frames_of_(stack)) WriteFrame(frame);
  if (forward_stack != 0) {
    WriteFrame("backward of this forward call:", "autograd", 0);
    for (const FrameText& frame : frames_of_(forward_stack)) WriteFrame(frame);
  }
  pickle_.End();
}

void TorchFrameWriter::WriteForward(uint32_t forward_stack) {
  const auto known = forward_lists_.find(forward_stack);
  if (known != forward_lists_.end()) return pickle_.Recall(known->second);
  pickle_.BeginList();
  forward_lists_[forward_stack] = pickle_.Remember();
  const std::vector<FrameText> frames = frames_of_(forward_stack);
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
    // A frame without a file comes from a text without one.
    pickle_.String(!HasFile(*frame) ? frame->Name()
                                    : absl::StrCat("  File \"", frame->file, "\", line ",
                                                   frame->line, ", in ", frame->Name(), "\n"));
  }
  pickle_.End();
}

void TorchFrameWriter::WriteFrame(const FrameText& frame) {
  WriteFrame(frame.Name(), frame.file.empty() ? frame.module : frame.file, frame.line);
}

void TorchFrameWriter::WriteFrame(const std::string& name, const std::string& file, uint32_t line) {
  const std::string key = absl::StrCat(name, "\n", file, "\n", line);
  const auto known = frames_.find(key);
  if (known != frames_.end()) return pickle_.Recall(known->second);
  pickle_.BeginDict();
  frames_[key] = pickle_.Remember();
  pickle_.String("name");
  pickle_.String(name);
  pickle_.String("filename");
  pickle_.String(file);
  pickle_.String("line");
  pickle_.Int(line);
  pickle_.End();
}

}  // namespace gmt::interop
