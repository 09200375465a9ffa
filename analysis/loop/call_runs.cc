#include "analysis/loop/call_runs.h"

#include <algorithm>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/loop/stack_phases.h"
#include "analysis/stacks/frames.h"

namespace gmt::analysis {
namespace {

constexpr uint64_t kNoCall = 0, kNoStack = 1, kBackward = 2, kFirstSite = 3,
                   kUnknownSite = UINT64_MAX;

// Identifies the call that a stack comes from: one of the values above, or a hash of the call's
// place.
class CallSites {
 public:
  explicit CallSites(const format::Definitions& definitions)
      : definitions_(definitions),
        phases_(definitions),
        sites_(definitions.stack_count() + size_t{1}, kUnknownSite) {}

  uint64_t Of(uint32_t stack) {
    if (stack == 0 || stack >= sites_.size()) return kNoStack;
    uint64_t& site = sites_[stack];
    if (site == kUnknownSite) site = Find(stack);
    return site;
  }

 private:
  uint64_t Find(uint32_t stack) {
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

  bool IsCall(uint32_t frame) {
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

  const format::Definitions& definitions_;
  StackPhases phases_;
  std::vector<uint64_t> sites_;                // by stack
  absl::flat_hash_map<uint32_t, bool> calls_;  // by frame
};

}  // namespace

std::vector<Step> BeginsOfCallRuns(const Trace& trace, const format::Definitions& definitions) {
  const Births births(trace);
  CallSites sites(definitions);
  bool has_calls = false;
  ForEachBirth(trace, [&](Step, RowId row) {
    has_calls = has_calls || (births.Counts(row) && sites.Of(trace.rows.stack[row]) >= kBackward);
  });
  std::vector<Step> begins;
  uint64_t last = kNoCall;
  ForEachBirth(trace, [&](Step step, RowId row) {
    if (!births.Counts(row)) return;
    const uint64_t site = sites.Of(trace.rows.stack[row]);
    // If other stacks have calls, one without any is from a thread without Python: a backward pass.
    const bool is_alone = site == kNoCall || (site == kNoStack && !has_calls);
    if (is_alone || site != last) begins.push_back(step);
    last = site;
  });
  return begins;
}

}  // namespace gmt::analysis
