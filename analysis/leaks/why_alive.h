// analysis/leaks/why_alive.h
//
// Why what leaks was still alive after the last step, as PyTorch said itself (analysis/examination/alive.h). It decides
// between graphs and tensors, which the number of stacks only hints at: a graph is kept if most of the
// memory is still saved for a backward pass. What the program frees as it ends was held until then.
//
// Thread safety: pure function.

#ifndef GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_
#define GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_

#include <vector>

#include "analysis/examination/examination.h"
#include "analysis/leaks/leaks.h"

namespace gmt::analysis {

// Sets `alive`, and where roles are known `kind` and `reason`. One walk over the rows.
void FindWhyAlive(const Examination& examination, std::vector<LeakSuspect>& suspects);

}  // namespace gmt::analysis

#endif  // GMT_ANALYSIS_LEAKS_WHY_ALIVE_H_
