#include <algorithm>
#include <cstddef>
#include <map>
#include <vector>

#include "analysis/loop/cycle_anchor.h"
#include "analysis/loop/cycle_births.h"
#include "analysis/loop/optimizer_sites.h"

namespace gmt::analysis {
InferredCycles CyclesOfOptimizers(const Trace& trace, const RowKinds& kinds,
                                  const format::Definitions& definitions) {
  const Births births(kinds);
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
