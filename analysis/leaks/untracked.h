// analysis/leaks/untracked.h
//
// Growth that no event explains: the device's reported use minus what is recorded, after each
// cycle.
//
//   used      10.0  10.1  10.2  10.3      modules, streams, graphs, handles: the driver's own
//                                         memory,
//   recorded   9.0   9.0   9.0   9.0      or a library's that was not observed
//
// Thread safety: pure functions. Cost: linear in samples and in steps.

#ifndef GMT_ANALYSIS_LEAKS_UNTRACKED_H_
#define GMT_ANALYSIS_LEAKS_UNTRACKED_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "analysis/leaks/site_history.h"
#include "analysis/leaks/trend.h"
#include "analysis/loop/phases.h"
#include "analysis/trace/trace.h"

namespace gmt::analysis {

struct UntrackedGrowth {
  int32_t device = 0;
  std::string source;       // "nvml", "cudaMemGetInfo"
  bool of_process = false;  // false: other processes may have grown
  Trend bytes_per_cycle;
  uint64_t bytes = 0;        // growth since `since_cycle`
  uint64_t since_cycle = 0;  // from 0
};

// The minimum of what a device used beyond what was recorded, per chunk of cycles. Chunks without a
// sample have no entry.
using UntrackedChunks = std::map<uint32_t, double>;
// The part that grows steadily, over the complete chunks; nullopt if none does.
std::optional<UntrackedGrowth> UntrackedGrowthOf(const UntrackedChunks& chunks,
                                                 const ChunkGrid& grid);

// The same for each device and source of a recording. `grid`: of all `cycles`.
std::vector<UntrackedGrowth> FindUntracked(const Trace& trace, const std::vector<Cycle>& cycles,
                                           const ChunkGrid& grid);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_UNTRACKED_H_
