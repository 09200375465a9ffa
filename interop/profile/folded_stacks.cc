#include "interop/profile/folded_stacks.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "format/printable.h"
#include "interop/profile/layer_selection.h"

namespace gmt::interop {
namespace {

std::string FoldedName(const std::string& text) {
  return absl::StrReplaceAll(format::Printable(text), {{";", ":"}});
}

std::string FoldedFrame(const analysis::FrameText& frame) {
  const std::string place = frame.Place();
  return FoldedName(place.empty() ? frame.Name() : absl::StrCat(frame.Name(), " (", place, ")"));
}

}  // namespace

std::string FoldedStacks(const analysis::Examination& examination, const StackProfile& profile) {
  // Stacks of a recording that differ only in frames of the allocator have the same text.
  std::map<std::string, int64_t> bytes;
  for (const StackProfile::Sample& sample : profile.samples) {
    if (sample.inuse_space == 0) continue;
    std::string line = absl::StrCat(DeviceLabel(sample.device), ";",
                                    FoldedName(examination.trace().heaps[sample.heap]));
    const auto frames = ProfileFrames(examination, sample.stack);
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame)
      absl::StrAppend(&line, ";", FoldedFrame(*frame));
    bytes[line] += sample.inuse_space;
  }
  std::vector<std::pair<std::string, int64_t>> lines(bytes.begin(), bytes.end());
  std::stable_sort(lines.begin(), lines.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::string text;
  for (const auto& [line, held] : lines) absl::StrAppend(&text, line, " ", held, "\n");
  return text;
}

}  // namespace gmt::interop
