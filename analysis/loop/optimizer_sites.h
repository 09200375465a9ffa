// analysis/loop/optimizer_sites.h
//
// OptimizerSites: identifies the caller of an optimizer's step by the stacks of its allocations.
//
// Thread safety: one thread at a time. Cost: each stack is examined once.

#ifndef GMT_ANALYSIS_LOOP_OPTIMIZER_SITES_H_
#define GMT_ANALYSIS_LOOP_OPTIMIZER_SITES_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "format/definitions.h"

namespace gmt::analysis {

class OptimizerSites {
 public:
  // REQUIRES: `definitions` outlives this object. It may grow.
  explicit OptimizerSites(const format::Definitions& definitions) : definitions_(definitions) {}

  // Returns a hash of the frames outside the optimizer's own; 0 if the stack has no optimizer.
  uint64_t Of(uint32_t stack) {
    if (stack > definitions_.stack_count()) return 0;  // never defined
    if (stack >= sites_.size()) sites_.resize(definitions_.stack_count() + size_t{1}, kNotAsked);
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
      const bool is_optimizers = file.find("torch/optim/") != std::string_view::npos ||
                                 file.find("torch\\optim\\") != std::string_view::npos;
      if (is_optimizers) outside = i + 1;
    }
    if (outside == 0) return 0;
    uint64_t site = 1469598103934665603u;  // FNV-1a
    for (size_t i = outside; i < frames.size(); ++i) site = (site ^ frames[i]) * 1099511628211u;
    return std::clamp<uint64_t>(site, 1, kNotAsked - 1);
  }

  const format::Definitions& definitions_;
  std::vector<uint64_t> sites_;  // by stack
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LOOP_OPTIMIZER_SITES_H_
