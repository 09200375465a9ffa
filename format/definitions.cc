#include "format/definitions.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "format/columns.h"
#include "format/printable.h"
#include "proto/gmt.pb.h"

namespace gmt::format {
namespace {

// Limits on what a file may claim, far above what a process can define. They prevent a few hostile
// bytes (columns repeat their last value, ids may be skipped) from claiming gigabytes.
constexpr uint64_t kMaxUndefined = 1u << 20;
constexpr uint64_t kMaxRowsOfChunk = 1u << 22;
constexpr uint64_t kMaxIds = 1u << 28;

template <typename T>
const T& LookUp(const std::vector<T>& values, uint32_t id) {
  static const T* const none = new T();
  return id == 0 || id > values.size() ? *none : values[id - 1];
}

uint32_t Shift(uint32_t id, uint32_t base) { return id == 0 ? 0 : id + base; }

// Returns how many ids before `first` have no definition; 0 if the chunk has no `first` or repeats
// ids.
uint64_t Missing(uint32_t first, uint32_t base, size_t have) {
  const uint64_t wanted = uint64_t{base} + first;
  return first == 0 || wanted <= have + 1 ? 0 : wanted - have - 1;
}

// Returns the index of the first value of a list. Appends empty values for lost ones.
template <typename T>
size_t PlaceOfFirst(uint32_t first, uint32_t base, size_t count, std::vector<T>* values) {
  if (count == 0) return values->size();
  const size_t at = first == 0 ? values->size() : size_t{base} + first - 1;
  values->resize(std::max(values->size(), at + count));
  return at;
}

}  // namespace

absl::Status Definitions::CheckRoom(const gmt::Definitions& chunk) const {
  const uint64_t frames = chunk.frames().count(), stacks = chunk.stacks().count();
  const uint64_t strings = static_cast<uint64_t>(chunk.strings_size());
  const uint64_t modules = static_cast<uint64_t>(chunk.modules_size());
  const uint64_t missing =
      (strings > 0 ? Missing(chunk.first_string(), base_.string, strings_.size()) : 0) +
      (modules > 0 ? Missing(chunk.first_module(), base_.module, modules_.size()) : 0) +
      (frames > 0 ? Missing(chunk.first_frame(), base_.frame, frames_.size()) : 0) +
      (stacks > 0 ? Missing(chunk.first_stack(), base_.stack, stacks_.size()) : 0);
  if (undefined_ + missing > kMaxUndefined) {
    return absl::OutOfRangeError(absl::StrCat("definitions skip ", missing, " ids"));
  }
  if (frames > kMaxRowsOfChunk || stacks > kMaxRowsOfChunk) {
    return absl::OutOfRangeError(
        absl::StrCat("definitions claim ", frames, " frames and ", stacks, " stacks"));
  }
  if (std::max({strings_.size() + strings, frames_.size() + frames, stacks_.size() + stacks}) >
      kMaxIds) {
    return absl::OutOfRangeError("too many definitions");
  }
  return absl::OkStatus();
}

absl::Status Definitions::Add(const gmt::Definitions& chunk) {
  absl::Status room = CheckRoom(chunk);
  if (!room.ok()) return room;
  const size_t before = strings_.size() + modules_.size() + frames_.size() + stacks_.size();

  size_t at = PlaceOfFirst(chunk.first_string(), base_.string,
                           static_cast<size_t>(chunk.strings_size()), &strings_);
  for (const std::string& text : chunk.strings())
    strings_[at++] = printable_ ? Printable(text) : text;

  at = PlaceOfFirst(chunk.first_module(), base_.module, static_cast<size_t>(chunk.modules_size()),
                    &modules_);
  for (const gmt::Module& m : chunk.modules()) {
    modules_[at++] = {printable_ ? Printable(m.path()) : m.path(),
                      m.build_id(),
                      m.base(),
                      m.size(),
                      m.bias(),
                      m.loaded_t_ns()};
  }
  at = PlaceOfFirst(chunk.first_frame(), base_.frame, chunk.frames().count(), &frames_);
  AddFrames(chunk.frames(), at);
  at = PlaceOfFirst(chunk.first_stack(), base_.stack, chunk.stacks().count(), &stacks_);
  AddStacks(chunk.stacks(), at);

  const size_t defined = static_cast<size_t>(chunk.strings_size()) +
                         static_cast<size_t>(chunk.modules_size()) + chunk.frames().count() +
                         chunk.stacks().count();
  const size_t grown = strings_.size() + modules_.size() + frames_.size() + stacks_.size() - before;
  if (grown > defined) undefined_ += grown - defined;
  return absl::OkStatus();
}

void Definitions::AddFrames(const gmt::Frames& columns, size_t at) {
  for (int row = 0; row < static_cast<int>(columns.count()); ++row) {
    FrameInfo& frame = frames_[at++];
    frame.module = Shift(ColumnAt(columns.module(), row), base_.module);
    frame.address = ColumnAt(columns.address(), row);
    frame.function = Shift(ColumnAt(columns.function(), row), base_.string);
    frame.file = Shift(ColumnAt(columns.file(), row), base_.string);
    frame.line = ColumnAt(columns.line(), row);
    frame.language = static_cast<Language>(ColumnAt(columns.language(), row));
    frame.other_language = Shift(ColumnAt(columns.other_language(), row), base_.string);
    frame.flags = ColumnAt(columns.flags(), row);
    frame.module_name = Shift(ColumnAt(columns.module_name(), row), base_.string);
  }
}

void Definitions::AddStacks(const gmt::Stacks& columns, size_t at) {
  for (int row = 0; row < static_cast<int>(columns.count()); ++row) {
    StackNode& node = stacks_[at++];
    node.frame = Shift(ColumnAt(columns.frame(), row), base_.frame);
    node.parent = Shift(ColumnAt(columns.parent(), row), base_.stack);
    node.log_id = ColumnAt(columns.log_id(), row);
    node.lacks = ColumnAt(columns.lacks(), row);
  }
}

absl::Status Definitions::Add(const gmt::Symbols& chunk) {
  if (chunk.count() > kMaxRowsOfChunk) {
    return absl::OutOfRangeError(absl::StrCat("symbols claim ", chunk.count(), " rows"));
  }
  uint32_t last = 0;
  for (int row = 0; row < static_cast<int>(chunk.count()); ++row) {
    const uint32_t frame = Shift(ColumnAt(chunk.frame(), row), base_.frame);
    std::vector<Symbol>& symbols = symbols_[frame];
    if (frame != last) symbols.clear();  // rows of one frame are adjacent
    last = frame;
    symbols.push_back({Shift(ColumnAt(chunk.function(), row), base_.string),
                       Shift(ColumnAt(chunk.file(), row), base_.string),
                       ColumnAt(chunk.line(), row)});
  }
  return absl::OkStatus();
}

void Definitions::BeginSegment() {
  previous_base_ = base_;
  base_ = {string_count(), module_count(), frame_count(), stack_count()};
}

std::string_view Definitions::string(uint32_t id) const { return LookUp(strings_, id); }
const ModuleInfo& Definitions::module(uint32_t id) const { return LookUp(modules_, id); }
const FrameInfo& Definitions::frame(uint32_t id) const { return LookUp(frames_, id); }
const StackNode& Definitions::stack(uint32_t id) const { return LookUp(stacks_, id); }

const std::vector<Symbol>& Definitions::symbols(uint32_t frame) const {
  static const auto* const none = new std::vector<Symbol>();
  const auto found = symbols_.find(frame);
  return found == symbols_.end() ? *none : found->second;
}

std::vector<uint32_t> Definitions::StackFrames(uint32_t id) const {
  std::vector<uint32_t> frames;
  while (id != 0) {
    const StackNode& node = stack(id);
    if (node.frame != 0) frames.push_back(node.frame);
    id = node.parent < id ? node.parent : 0;  // ids only decrease, so there can be no cycle
  }
  return frames;
}

uint32_t Definitions::WhatStackLacks(uint32_t id) const {
  while (id != 0) {
    const StackNode& node = stack(id);
    if (node.lacks != 0) return node.lacks;
    id = node.parent < id ? node.parent : 0;
  }
  return 0;
}

}  // namespace gmt::format
