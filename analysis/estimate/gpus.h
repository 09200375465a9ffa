// analysis/estimate/gpus.h
//
// The memory of common GPUs, as their driver reports it to programs: somewhat less than the name
// says.
//
// Thread safety: pure functions.

#ifndef GMT_ANALYSIS_ESTIMATE_GPUS_H_
#define GMT_ANALYSIS_ESTIMATE_GPUS_H_

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace gmt::analysis {

struct Gpu {
  std::string_view name;
  uint64_t bytes = 0;
};

// In ascending order of memory. The first of those with equal memory is the most common one.
const std::vector<Gpu>& KnownGpus();

// Finds a GPU by its name without regard to case, spaces, hyphens and "NVIDIA": "h100-80gb",
// "RTX 4090", "H100". If several match, it is the one with the least memory.
std::optional<Gpu> GpuNamed(std::string_view name);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_ESTIMATE_GPUS_H_
