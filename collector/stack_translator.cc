#include "collector/stack_translator.h"

#include <utility>

namespace gmt::collector {

uint32_t StackTranslator::FindModule(uint64_t address, uint32_t generation) const {
  for (size_t i = modules_.size(); i > 0; --i) {
    const session::ModuleCopy& m = modules_[i - 1];
    if (address >= m.start && address < m.end && m.generation <= generation) {
      return static_cast<uint32_t>(i - 1);
    }
  }
  return kNoModule;
}

uint32_t StackTranslator::ModuleId(uint32_t number) {
  module_ids_.resize(modules_.size());
  uint32_t& id = module_ids_[number];
  if (id == 0) {
    const session::ModuleCopy& m = modules_[number];
    format::ModuleInfo info;
    info.path = m.path;
    info.build_id = m.build_id;
    info.base = m.start;
    info.size = m.end - m.start;
    info.bias = m.bias;
    info.loaded_t_ns = static_cast<int64_t>(m.seen_ns - session_.header().monotonic_ns);
    id = definitions_->AddModule(info);
  }
  return id;
}

uint32_t StackTranslator::TranslateFrame(uint64_t address, uint32_t generation, bool* found) {
  format::FrameInfo frame;
  frame.flags = format::kFrameIsReturnAddress;  // what lies inside the hook itself is not recorded
  const uint32_t number = FindModule(address, generation);
  *found = number != kNoModule;
  frame.module = *found ? ModuleId(number) : 0;
  frame.address = *found ? address - modules_[number].bias : address;
  const uint32_t id = definitions_->InternFrame(frame);
  if (id > newest_frame_) {
    newest_frame_ = id;
    if (*found) new_frames_.push_back({id, number, frame.address});
  }
  return id;
}

uint32_t StackTranslator::Translate(uint32_t stack) {
  if (stack == 0) return 0;
  const uint32_t logged = session_.control().module_count.load(std::memory_order_acquire);
  const auto known = stacks_.find(stack);
  if (known != stacks_.end() &&
      (known->second.complete_at == kComplete || known->second.complete_at >= logged)) {
    return known->second.id;
  }
  session::ReadNewModules(session_, &modules_);
  session::StackFrames read;
  if (!session::ReadStack(session_, stack, &read)) return 0;
  std::vector<uint32_t> frames;
  bool complete = true;
  for (const uint64_t address : read.frames) {
    if (address & session::kInterpreterFrame) continue;  // of a layout newer than this collector
    bool found;
    frames.push_back(TranslateFrame(address, read.generation, &found));
    complete &= found;
  }
  const uint32_t id = definitions_->InternStack(frames, read.truncated);
  stacks_.insert_or_assign(stack, Known{id, complete ? kComplete : logged});
  return id;
}

std::vector<StackTranslator::NativeFrame> StackTranslator::TakeNewFrames() {
  return std::exchange(new_frames_, {});
}

}  // namespace gmt::collector
