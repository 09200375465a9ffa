#include "interop/heaptrack/heaptrack_file.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "analysis/stacks/frames.h"
#include "format/printable.h"
#include "interop/profile/layer_selection.h"
#include "interop/profile/stack_profile.h"

namespace gmt::interop {
namespace {

using analysis::FrameText;
using analysis::RowId;

class HeaptrackWriter {
 public:
  HeaptrackWriter(const analysis::Examination& examination, std::ostream& out)
      : examination_(examination), trace_(examination.trace()), out_(out) {}

  void Write(const LayerSelection& selection) {
    fmt::print(out_, "v 10400 2\nX {}\n",
               format::Printable(trace_.argv.empty() ? "?" : absl::StrJoin(trace_.argv, " ")));
    for (RowId row = 0; row < trace_.rows.count(); ++row) {
      if (trace_.rows.birth[row] == 0 && selection.Selects(row)) WriteChange('+', row);
    }
    int64_t ms = 0;
    for (const analysis::StepRecord& step : trace_.steps) {
      if (step.row == analysis::kNoRow || !selection.Selects(step.row)) continue;
      if (step.t_ns / 1'000'000 > ms) {
        ms = step.t_ns / 1'000'000;
        fmt::print(out_, "c {:x}\n", ms);
      }
      WriteChange(step.is_death ? '-' : '+', step.row);
    }
    fmt::print(out_, "c {:x}\n", std::max(ms, trace_.end_t_ns / 1'000'000));
  }

 private:
  void WriteChange(char change, RowId row) {
    const std::pair<uint64_t, uint64_t> key = {trace_.rows.size[row],
                                               StackId(trace_.rows.stack[row])};
    const auto [it, is_new] = allocations_.try_emplace(key, allocations_.size());
    if (is_new) fmt::print(out_, "a {:x} {:x}\n", key.first, key.second);
    fmt::print(out_, "{} {:x}\n", change, it->second);
  }

  uint64_t StackId(uint32_t stack) {
    const auto known = stacks_.find(stack);
    if (known != stacks_.end()) return known->second;
    const std::vector<FrameText> frames = ProfileFrames(examination_, stack);
    uint64_t id = 0;  // no caller
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      const std::pair<uint64_t, uint64_t> key = {FrameId(*frame), id};
      const auto [it, is_new] = callers_.try_emplace(key, callers_.size() + 1);
      if (is_new) fmt::print(out_, "t {:x} {:x}\n", key.first, key.second);
      id = it->second;
    }
    stacks_.emplace(stack, id);
    return id;
  }

  uint64_t FrameId(const FrameText& frame) {
    const std::tuple<uint64_t, uint64_t, uint64_t, uint32_t> key = {
        StringId(frame.module), StringId(frame.Name()), StringId(frame.file), frame.line};
    const auto [it, is_new] = frames_.try_emplace(key, frames_.size() + 1);
    if (is_new) {
      const auto& [module, function, file, line] = key;
      // heaptrack identifies frames by address, so each gets one of its own.
      fmt::print(out_, "i {:x} {:x} {:x} {:x} {:x}\n", it->second, module, function, file, line);
    }
    return it->second;
  }

  uint64_t StringId(const std::string& text) {
    if (text.empty()) return 0;
    const auto [it, is_new] = strings_.try_emplace(text, strings_.size() + 1);
    if (is_new) fmt::print(out_, "s {}\n", format::Printable(text));
    return it->second;
  }

  const analysis::Examination& examination_;
  const analysis::Trace& trace_;
  std::ostream& out_;
  // Ids in the file. stacks_ has those of the recording's stacks.
  absl::flat_hash_map<std::string, uint64_t> strings_;
  std::map<std::tuple<uint64_t, uint64_t, uint64_t, uint32_t>, uint64_t> frames_;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> callers_;  // by frame and caller
  absl::flat_hash_map<uint32_t, uint64_t> stacks_;
  absl::flat_hash_map<std::pair<uint64_t, uint64_t>, uint64_t> allocations_;  // by size and stack
};

}  // namespace

absl::Status WriteHeaptrackFile(const analysis::Examination& examination,
                                std::optional<int32_t> device, const std::string& heap,
                                std::ostream& out) {
  const auto selection = LayerSelection::Make(examination.trace(), device, heap);
  if (!selection.ok()) return selection.status();
  if (selection->devices().size() > 1) {
    std::vector<std::string> names;
    for (const int32_t one : selection->devices()) names.push_back(DeviceLabel(one));
    return absl::FailedPreconditionError(
        absl::StrCat("heaptrack knows one heap, but memory of several devices was recorded: ",
                     absl::StrJoin(names, ", "), ". Select a GPU with: --device N"));
  }
  HeaptrackWriter(examination, out).Write(*selection);
  return absl::OkStatus();
}

}  // namespace gmt::interop
