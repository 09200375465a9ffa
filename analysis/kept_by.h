// analysis/kept_by.h
//
// What keeps memory alive, as far as PyTorch said so itself: that it is a parameter or a gradient, or
// that nodes of the autograd graph have saved it for their backward passes. What is none of these is
// held by the program alone: a variable, a list, an optimizer.
//
//   RoleChanges    saved by SoftmaxBackward0 of stack 12, saved by MulBackward0 of stack 14, released
//   KeptBy         the last state at or before a step
//
// Thread safety: const methods from any thread. Cost: one walk over the changes of a trace.

#ifndef GMT_ANALYSIS_KEPT_BY_H_
#define GMT_ANALYSIS_KEPT_BY_H_

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "analysis/trace.h"

namespace gmt::analysis {

struct Keepers {
  uint32_t roles = 0;  // bits of format::Role
  // The last node that saved it: its class (a string) and the stack of the forward pass that made it.
  // `nodes`: how many have saved it since it was last released.
  uint32_t node = 0, stack = 0, nodes = 0;
};

class KeptBy {
 public:
  // After that many steps. `trace` must outlive it.
  KeptBy(const Trace& trace, Step step);

  // Whether the recording has roles at all: without, nothing is known of anything.
  bool is_known() const { return !keepers_.empty(); }
  Keepers Of(RowId row) const {
    const auto found = keepers_.find(row);
    return found == keepers_.end() ? Keepers{trace_.rows.Roles(row)} : found->second;
  }

 private:
  const Trace& trace_;
  absl::flat_hash_map<RowId, Keepers> keepers_;
};

// Memory with the same keeper, for a list: most bytes first. Memory that several nodes have saved stands
// under the last of them.
struct KeptMemory {
  Keepers keepers;
  uint64_t bytes = 0, count = 0;
};

class KeptSums {
 public:
  void Add(const Keepers& keepers, uint64_t bytes);
  std::vector<KeptMemory> Sorted() const;

 private:
  std::vector<KeptMemory> sums_;
};

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_KEPT_BY_H_
