#include "viewer/questions/range_labels.h"

#include <algorithm>
#include <string_view>

#include "analysis/report/report.h"

namespace gmt::viewer {
namespace {

using analysis::FrameText;

std::string BaseNameOf(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace

std::string ModuleOf(const FrameText& frame) {
  if (!frame.module.empty()) return BaseNameOf(frame.module);
  const std::string_view file = frame.file;
  for (const std::string_view packages : {"site-packages/", "dist-packages/"}) {
    const size_t at = file.find(packages);
    if (at == std::string_view::npos) continue;
    const std::string_view rest = file.substr(at + packages.size());
    return std::string(rest.substr(0, rest.find('/')));
  }
  return BaseNameOf(file);
}

uint32_t RangeLabels::LabelOf(const FrameText& frame) {
  const auto [found, is_new] = by_frame_.try_emplace(&frame, kUnknown);
  if (!is_new) return found->second;
  const std::string text = by_ == RangeQuery::kModule ? ModuleOf(frame)
                           : by_ == RangeQuery::kLine
                               ? frame.Place()
                               : GroupLabel(analysis::GroupBy::kFunction, frame);
  if (text.empty()) return kUnknown;
  const auto [known, is_new_text] = by_text_.try_emplace(text, count());
  if (is_new_text) texts_.push_back(text);
  return found->second = known->second;
}

const RangeLabels::Labels& RangeLabels::Of(uint32_t stack, uint32_t forward_stack) {
  const auto [found, is_new] = by_stacks_.try_emplace({stack, forward_stack});
  if (!is_new) return found->second;
  Labels& labels = found->second;
  if (const FrameText* own = frames_.Own(stack, forward_stack)) labels.own = LabelOf(*own);
  labels.all.push_back(labels.own);
  for (const uint32_t each : {stack, forward_stack}) {
    for (const FrameText* frame : frames_.Frames(each)) {
      if (folded_ && frame->is_noise()) continue;
      if (const uint32_t label = LabelOf(*frame); label != kUnknown) labels.all.push_back(label);
    }
  }
  std::sort(labels.all.begin(), labels.all.end());
  labels.all.erase(std::unique(labels.all.begin(), labels.all.end()), labels.all.end());
  return labels;
}

}  // namespace gmt::viewer
