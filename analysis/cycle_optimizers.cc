#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <vector>

#include "analysis/cycle_anchor.h"
#include "analysis/cycle_births.h"

namespace gmt::analysis {
namespace {

// Who called the optimizer: the frames outside its own, as one number; 0 where there is no optimizer.
class OptimizerSites {
 public:
  explicit OptimizerSites(const format::Definitions& definitions)
      : definitions_(definitions), sites_(definitions.stack_count() + size_t{1}, kNotAsked) {}

  uint64_t Of(uint32_t stack) {
    if (stack >= sites_.size()) return 0;  // never defined
    uint64_t& site = sites_[stack];
    if (site == kNotAsked) site = Find(stack);
    return site;
  }

 private:
  static constexpr uint64_t kNotAsked = UINT64_MAX;

  uint64_t Find(uint32_t stack) const {
    const std::vector<uint32_t> frames = definitions_.StackFrames(stack);
    size_t outside = 0;
    for (size_t i = 0; i < frames.size(); ++i) {
      const std::string_view file = definitions_.string(definitions_.frame(frames[i]).file);
      if (file.find("torch/optim/") != std::string_view::npos) outside = i + 1;
    }
    if (outside == 0) return 0;
    uint64_t site = 1469598103934665603u;  // FNV-1a
    for (size_t i = outside; i < frames.size(); ++i) site = (site ^ frames[i]) * 1099511628211u;
    return std::clamp<uint64_t>(site, 1, kNotAsked - 1);
  }

  const format::Definitions& definitions_;
  std::vector<uint64_t> sites_;  // by stack
};

}  // namespace

InferredCycles CyclesOfOptimizers(const Trace& trace, const format::Definitions& definitions) {
  const Births births(trace);
  OptimizerSites sites(definitions);
  std::map<uint64_t, std::vector<Step>> ends;  // of bursts, by call site
  uint64_t bursting = 0;
  ForEachBirth(trace, [&](Step step, RowId row) {
    if (!births.Counts(row)) return;
    const uint64_t site = sites.Of(trace.rows.stack[row]);
    if (site != 0) {
      std::vector<Step>& of = ends[site];
      site == bursting ? void(of.back() = step) : of.push_back(step);
    }
    bursting = site;
  });
  InferredCycles found;
  for (auto& [site, of] : ends) {
    const bool later = of.size() == found.ends.size() && of.back() > found.ends.back();
    if (of.size() > found.ends.size() || later) found.ends = std::move(of);
  }
  if (found.ends.size() < 2) return {};
  found.source = "memory of Optimizer.step";
  return found;
}

}  // namespace gmt::analysis
