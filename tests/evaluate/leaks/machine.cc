#include "tests/evaluate/leaks/machine.h"

namespace gmt::evaluate {
namespace {

constexpr uint64_t kDeviceBytes = uint64_t{80} << 30;
constexpr uint32_t kPid = 4711;

}  // namespace

uint32_t Machine::Stack(const std::vector<std::pair<std::string, uint32_t>>& own,
                        const std::string& operation, const std::string& library) {
  format::DefinitionsBuilder& builder = script.builder();
  std::vector<uint32_t> frames;
  if (!library.empty()) {
    format::FrameInfo frame;
    frame.function = builder.InternString(operation);
    frame.module_name = builder.InternString(library);
    frame.language = format::Language::kCxx;
    frames.push_back(builder.InternFrame(frame));
  } else {
    format::FrameInfo frame;
    frame.function = builder.InternString(operation);
    frame.file = builder.InternString("/usr/lib/python3/site-packages/torch/nn/functional.py");
    frame.line = 1 + static_cast<uint32_t>(operation.size());
    frame.language = format::Language::kPython;
    frames.push_back(builder.InternFrame(frame));
  }
  for (const auto& [function, line] : own) {
    format::FrameInfo frame;
    frame.function = builder.InternString(function);
    frame.file = builder.InternString("/src/train.py");
    frame.line = line;
    frame.language = format::Language::kPython;
    frames.push_back(builder.InternFrame(frame));
  }
  return builder.InternStack(frames, 0);
}

Machine::Block Machine::Alloc(uint32_t stack, uint64_t size, Where where) {
  size = (size + 511) / 512 * 512;
  const Block block = next_address_;
  next_address_ += size + (uint64_t{2} << 20);
  held_[block] = {size, where};
  if (where == Where::kDriver) driver_bytes_ += size;
  if (!recording_) return block;
  switch (where) {
    case Where::kBlock:
      script.Block(block, size).stack = stack;
      break;
    case Where::kDriver:
      script.Alloc(block, size).stack = stack;
      break;
    case Where::kPinned:
      script.Pinned(block, size).stack = stack;
      break;
  }
  return block;
}

void Machine::Free(Block block) {
  const auto held = held_.find(block);
  if (held == held_.end()) return;
  const auto [size, where] = held->second;
  held_.erase(held);
  if (where == Where::kDriver) driver_bytes_ -= size;
  if (!recording_) return;
  format::Event& event = where == Where::kBlock    ? script.FreeBlock(block)
                         : where == Where::kDriver ? script.Free(block)
                                                   : script.FreePinned(block);
  event.present |= format::kHasSize;
  event.size = size;
  if (where == Where::kBlock && states_completions_) script.FreeBlockDone(block);
}

void Machine::FreeForgotten(Block block) {
  held_.erase(block);
  if (recording_) script.FreeBlock(block);
}

void Machine::EndCycle() {
  if (!recording_) return;
  const uint64_t used = hidden_bytes_ / (2 << 20) * (2 << 20) + driver_bytes_;
  auto& sample = script.Sample(used + (uint64_t{300} << 20), kDeviceBytes);
  sample.set_source("nvml");
  auto* ours = sample.add_processes();
  ours->set_pid(kPid);
  ours->set_bytes(used);
  script.pid = kPid;
}

}  // namespace gmt::evaluate
