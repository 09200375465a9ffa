// analysis/leaks/untracked.h
//
// Growth that no event explains: what the device says is used, less what is recorded, after each cycle.
//
//   used      10.0  10.1  10.2  10.3      modules, streams, graphs, handles: the driver's own memory,
//   recorded   9.0   9.0   9.0   9.0      or a library's that was not seen
//
// Thread safety: pure functions. Cost: linear in samples and in steps.

#ifndef GMT_ANALYSIS_LEAKS_UNTRACKED_H_
#define GMT_ANALYSIS_LEAKS_UNTRACKED_H_

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/trend.h"
#include "analysis/phases.h"
#include "analysis/trace.h"

namespace gmt::analysis {

struct UntrackedGrowth {
  int32_t device = 0;
  std::string source;       // "nvml", "cudaMemGetInfo"
  bool of_process = false;  // else other processes may have grown
  Trend bytes_per_cycle;
  uint64_t bytes = 0;        // grown since `since_cycle`
  uint64_t since_cycle = 0;  // from 0
};

// The least that a device used and nobody had recorded, in each of kUntrackedParts equal parts of the
// cycles; parts without a sample are left out. What grows of it all the time, if it does.
using UntrackedParts = std::map<size_t, double>;
inline constexpr size_t kUntrackedParts = 40;
std::optional<UntrackedGrowth> UntrackedGrowthOf(const UntrackedParts& parts, size_t cycles);

// Of the devices where it grows all the time.
std::vector<UntrackedGrowth> FindUntracked(const Trace& trace, const std::vector<Cycle>& cycles);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_UNTRACKED_H_
