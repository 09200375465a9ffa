// analysis/whatif/varying_sizes.h
//
// Code that requests another size in each step, as for sequences of varying length. The pieces that
// such blocks leave fit few later ones, so the allocator reserves more segments. If each request
// had the largest size of its code, blocks would be used again as they are.
//
// Thread safety: pure functions. Cost: one walk over rows; a replay of a changed history is up to
// the caller.

#ifndef GMT_ANALYSIS_WHATIF_VARYING_SIZES_H_
#define GMT_ANALYSIS_WHATIF_VARYING_SIZES_H_

#include <cstdint>
#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/whatif/program_change.h"

namespace gmt::analysis {

struct VaryingSite {
  uint32_t stack = 0;
  uint32_t forward_stack = 0;  // memory of a backward pass: the node's forward call; 0 if unknown
  uint64_t requests = 0;       // until the moment
  uint64_t sizes = 0;          // how many different ones they have
  uint64_t smallest = 0, largest = 0;
  uint64_t held_bytes = 0;  // at the moment
};

// Returns the stacks whose blocks have at least three times as many sizes in all steps as in any
// single one; without steps, those of which at least half of the requests have a size of their own.
// Those with most held bytes at the moment after `step` come first. Blocks of 1 MiB or less do not
// count: they share segments of their own.
std::vector<VaryingSite> FindVaryingSites(const Examination& examination, int32_t device,
                                          Step step);

// Every block of these stacks gets the largest size of its stack.
void PadToLargest(const std::vector<VaryingSite>& sites, ProgramChange& change);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_WHATIF_VARYING_SIZES_H_
