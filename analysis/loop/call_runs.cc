#include "analysis/loop/call_runs.h"

#include <algorithm>
#include <string>
#include <utility>

#include "analysis/stacks/frames.h"

namespace gmt::analysis {

CallRuns::CallRuns(const Trace& trace, const Births& births, const format::Definitions& definitions)
    : trace_(trace),
      births_(births),
      definitions_(definitions),
      phases_(definitions),
      sites_(definitions.stack_count() + size_t{1}, kUnknownSite) {}

bool CallRuns::Begins(uint32_t stack) {
  const uint64_t site = SiteOf(stack);
  // If other stacks have calls, one without any is from a thread without Python: a backward pass.
  const bool is_alone = site == kNoCall || (site == kNoStack && !HasCalls());
  const bool is_another = std::exchange(last_site_, site) != site;
  return is_alone || is_another;
}

bool CallRuns::HasCalls() {
  if (has_calls_) return *has_calls_;
  bool found = false;
  ForEachBirth(trace_, [&](Step, RowId row) {
    found = found || (births_.Counts(row) && SiteOf(trace_.rows.stack[row]) >= kBackward);
  });
  has_calls_ = found;
  return found;
}

uint64_t CallRuns::SiteOf(uint32_t stack) {
  if (stack == 0 || stack >= sites_.size()) return kNoStack;
  uint64_t& site = sites_[stack];
  if (site == kUnknownSite) site = FindSite(stack);
  return site;
}

uint64_t CallRuns::FindSite(uint32_t stack) {
  const StackPhase phase = phases_.Of(stack);
  if (phase == StackPhase::kBackward || phase == StackPhase::kRecomputed) return kBackward;
  const std::vector<uint32_t> frames = definitions_.StackFrames(stack);
  const auto outermost =
      std::find_if(frames.rbegin(), frames.rend(), [&](uint32_t frame) { return IsCall(frame); });
  if (outermost == frames.rend()) return kNoCall;
  // Only Python frames: snapshots do not have the interpreter's native frames in the same places.
  uint64_t site = 1469598103934665603u;  // FNV-1a
  for (auto frame = outermost.base(); frame != frames.end(); ++frame) {
    const bool is_known = *frame != 0 && *frame <= definitions_.frame_count();
    if (is_known && definitions_.frame(*frame).language == format::Language::kPython)
      site = (site ^ *frame) * 1099511628211u;
  }
  return std::clamp(site, kFirstSite, kUnknownSite - 1);
}

bool CallRuns::IsCall(uint32_t frame) {
  if (frame == 0 || frame > definitions_.frame_count()) return false;
  const auto [known, is_new] = calls_.try_emplace(frame);
  if (is_new) {
    const std::vector<FrameText> texts = DescribeFrame(definitions_, frame);
    known->second = std::any_of(texts.begin(), texts.end(), [](const FrameText& text) {
      return IsModuleCall(text) || text.file.find("torch/optim/") != std::string::npos;
    });
  }
  return known->second;
}

std::vector<Step> BeginsOfCallRuns(const Trace& trace, const RowKinds& kinds,
                                   const format::Definitions& definitions) {
  const Births births(kinds);
  CallRuns runs(trace, births, definitions);
  std::vector<Step> begins;
  ForEachBirth(trace, [&](Step step, RowId row) {
    if (births.Counts(row) && runs.Begins(trace.rows.stack[row])) begins.push_back(step);
  });
  return begins;
}

}  // namespace gmt::analysis
