#include "collector/events/stack_translator.h"

#include <algorithm>
#include <utility>

#include "format/definitions_builder.h"
#include "symbols/python_lines.h"

namespace gmt::collector {
namespace {

uint32_t LacksOf(uint16_t flags) {
  uint32_t lacks = 0;
  if ((flags & session::kStackTruncated) != 0) lacks |= format::kStackTruncated;
  if ((flags & session::kStackUnmerged) != 0) lacks |= format::kStackUnmerged;
  if ((flags & session::kStackNoPython) != 0) lacks |= format::kStackNoPython;
  return lacks;
}

// The last line of a co_lnotab extends to the end of the code. If the table was cut, it is unknown
// whether the instruction is still on that line.
bool IsBehindCut(const session::CodeCopy& code, uint32_t instruction) {
  if (!code.line_table_cut || code.format != session::LineTable::kPython39) return false;
  uint64_t end = 0;  // in bytes of code
  for (size_t i = 0; i < code.line_table.size(); i += 2) {
    end += static_cast<uint8_t>(code.line_table[i]);
  }
  return 2 * uint64_t{instruction} >= end;
}

// Returns 0 if the line is unknown: there is no table, or it was cut before that line.
uint32_t LineOf(const session::CodeCopy& code, uint32_t instruction) {
  if (instruction == session::kBeforeInstructions) return code.first_line;
  if (IsBehindCut(code, instruction)) return 0;
  switch (code.format) {
    case session::LineTable::kPython39:
      return symbols::PythonLine(symbols::PythonLineTable::kLnotab39, code.first_line,
                                 code.line_table, instruction);
    case session::LineTable::kPython310:
      return symbols::PythonLine(symbols::PythonLineTable::kLineTable310, code.first_line,
                                 code.line_table, instruction);
    case session::LineTable::kPython311:
      return symbols::PythonLine(symbols::PythonLineTable::kLocations311, code.first_line,
                                 code.line_table, instruction);
    case session::LineTable::kNone:
      break;
  }
  return 0;
}

}  // namespace

uint32_t StackTranslator::FindModule(uint64_t address, uint32_t generation) const {
  for (size_t i = modules_.size(); i > 0; --i) {
    const session::ModuleCopy& m = modules_[i - 1];
    if (address >= m.start && address < m.end && m.generation <= generation) {
      return m.path.empty() ? kNoModule : static_cast<uint32_t>(i - 1);  // unloaded by then
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

uint32_t StackTranslator::TranslateNative(const session::StackFrame& read, uint32_t number) {
  format::FrameInfo frame;
  if (read.kind != session::StackFrame::Kind::kExact) frame.flags = format::kFrameIsReturnAddress;
  const bool found = number != kNoModule;
  frame.module = found ? ModuleId(number) : 0;
  frame.address = found ? read.address - modules_[number].bias : read.address;
  const uint32_t id = definitions_->InternFrame(frame);
  if (id > newest_frame_) {
    newest_frame_ = id;
    if (found) new_frames_.push_back({id, number, frame.address, read.kind});
  }
  return id;
}

const StackTranslator::Code& StackTranslator::FindCode(uint32_t id) {
  const auto [place, is_new] = codes_.try_emplace(id);
  Code& code = place->second;
  if (is_new && session::ReadCode(session_, id, &code.copy)) {
    code.known = true;
    code.function = definitions_->InternString(code.copy.function);
    code.file = definitions_->InternString(code.copy.file);
  }
  return code;
}

uint32_t StackTranslator::TranslatePython(const session::StackFrame& read) {
  const Code& code = FindCode(read.code);
  format::FrameInfo frame;
  frame.language = format::Language::kPython;
  frame.function = code.function;
  frame.file = code.file;
  if (code.known && read.instruction < session::kMaxInstruction) {
    frame.line = LineOf(code.copy, read.instruction);
  }
  if (frame.function != 0) frame.flags |= format::kFrameHasFunction;
  if (frame.file != 0) frame.flags |= format::kFrameHasFile;
  if (frame.line != 0) frame.flags |= format::kFrameHasLine;
  const uint32_t id = definitions_->InternFrame(frame);
  newest_frame_ = std::max(newest_frame_, id);
  return id;
}

uint32_t StackTranslator::FindOrDefine(uint32_t stack) {
  const auto known = stacks_.find(stack);
  if (known != stacks_.end() && IsFinal(known->second)) {
    RecentOf(stack) = {stack, known->second};
    return known->second.id;
  }
  const uint32_t logged = session_.control().module_count.load(std::memory_order_acquire);
  session::ReadNewModules(session_, &modules_);
  session::StackFrames read;
  if (!session::ReadStack(session_, stack, &read)) return 0;
  std::vector<uint32_t> frames;
  bool complete = true;
  for (const session::StackFrame& frame : read.frames) {
    if (frame.kind == session::StackFrame::Kind::kPython) {
      frames.push_back(TranslatePython(frame));
      continue;
    }
    const uint32_t module = FindModule(frame.address, read.generation);
    if (IsShim(module)) continue;
    frames.push_back(TranslateNative(frame, module));
    complete &= module != kNoModule;
  }
  const uint32_t id = definitions_->InternStack(frames, LacksOf(read.flags));
  stacks_.insert_or_assign(stack, Known{id, complete ? kComplete : logged});
  return id;
}

std::string StackTranslator::CallerOf(uint32_t stack) {
  session::ReadNewModules(session_, &modules_);
  session::StackFrames read;
  if (stack == 0 || !session::ReadStack(session_, stack, &read)) return "";
  for (const session::StackFrame& frame : read.frames) {
    if (frame.kind == session::StackFrame::Kind::kPython) return "";
    const uint32_t module = FindModule(frame.address, read.generation);
    if (!IsShim(module)) return module == kNoModule ? "" : modules_[module].path;
  }
  return "";
}

std::string StackTranslator::FindLibrary(std::string_view beginning) {
  session::ReadNewModules(session_, &modules_);
  for (size_t i = modules_.size(); i > 0; --i) {
    const std::string& path = modules_[i - 1].path;
    if (path.compare(path.rfind('/') + 1, beginning.size(), beginning) == 0) return path;
  }
  return "";
}

std::vector<StackTranslator::NativeFrame> StackTranslator::TakeNewFrames() {
  return std::exchange(new_frames_, {});
}

}  // namespace gmt::collector
